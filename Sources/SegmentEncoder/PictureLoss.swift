// Refuses a session of which most pictures would not be shown. Its sender may have removed them, so they must not go with the batch.

import Encoding
import FileSystem
import FrameBatches

enum PictureLoss {
  /// Returns the error of a session that would show less than half of its pictures; nil if it shows enough.
  ///
  /// - Parameters:
  ///   - batch: with all frames, also those that are published already.
  ///   - hidden: the number of its frames that are not shown, companions aside.
  ///   - refused: all that is not shown.
  static func error(of batch: Batch, hidden: Int, _ refused: [RefusedFrame]) -> BadBatch? {
    guard let share = PictureShare.all(of: batch, hidden: hidden).first(where: \.isMostlyLost) else { return nil }
    let counts = "\(share.lost) of \(share.total) pictures would not be shown"
    let groups = Dictionary(grouping: refused.filter(\.isPicture), by: \.group)
    let most = groups.values.max { ($0.count, $1[0].source) < ($1.count, $0[0].source) }
    guard let most else { return BadBatch("encode", batch.name, counts, advice: Self.advice) }
    let cause =
      "\(counts); \(min(most.count, share.lost)) of these, the first \(most[0].source.shortened(to: 255)): \(most[0].reason)"
    return BadBatch("encode", batch.name, cause, advice: advice(on: most[0], batch))
  }

  private static let advice = "correct the recorder, or send the pictures with a batch.json"

  /// - Parameter frame: one of the largest group.
  private static func advice(on frame: RefusedFrame, _ batch: Batch) -> String {
    switch frame.kind {
    case .undecoded(let refusal): refusal.remedy?.text ?? "check that the recorder writes whole images"
    case .otherName:
      batch.adviceOnNames ?? "describe the names with --name-time, or list the frames and their times in a batch.json"
    case .inFolder: "give each folder as a batch of its own"
    case .sameInstant: "give each picture a time of its own, for example in a batch.json"
    case .early: "send later pictures too, or name another session if these are of another recorder"
    // The warnings have the options that keep frames with other times.
    case .record, .copy, .other: batch.warnings.last ?? advice
    }
  }
}

extension RefusedFrame {
  /// The reason without the facts of this frame.
  fileprivate var group: String {
    switch kind {
    case .undecoded(let refusal): "decode " + refusal.fault.replacing("decode \(source)", with: "")
    case .sameInstant: "same instant"
    case .early: "early"
    // Names and instants differ.
    case .otherName, .inFolder, .record, .copy, .other:
      String(reason.replacing(source, with: "").filter { !$0.isNumber })
    }
  }
}

extension BadBatch {
  /// Returns the error of the other sessions of a batch when some are published.
  ///
  /// - Parameter refused: at least one.
  init(_ refused: [RefusedSession], published: Int) {
    let first = refused[0]
    let others = refused.count > 1 ? "; so are \(refused.count - 1) more" : ""
    let session = "session \(first.session.shortened(to: 128)) is refused, \(published) others are published"
    var bad = BadBatch(
      first.error.operation, first.error.file, "\(session)\(others): \(first.error.cause)", advice: first.error.advice)
    bad.marks = refused.flatMap(\.error.marks)
    self = bad
  }
}
