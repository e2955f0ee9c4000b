// The part of a session around a label, as a person names it.

import FileSystem
import FrameBatches
import Sessions

/// A label of a session, and the part that a clip of it shows.
package struct LabelPart: Equatable {
  /// The length of a clip of a label without an end and without a next one of its kind, in milliseconds.
  private static let lengthMs: Int64 = 10_000
  /// Maximum number of labels in a message.
  private static let mostNamed = 10

  let label: Label
  /// In unix milliseconds.
  let fromMs: Int64
  let toMs: Int64
  /// The instants of later labels with the same text, in unix milliseconds.
  let others: [Int64]

  /// Finds the label whose text is these words, or has them in it, in any case. Of several with one text it is the first.
  ///
  /// - Parameters:
  ///   - labels: of the session, in the order of their times.
  ///   - startMs: of the session, in unix milliseconds.
  /// - Throws: ``Failure`` if there is none, or if there are several with different texts.
  init(_ words: String, in labels: [Label], of session: SessionID, startMs: Int64) throws(Failure) {
    let wanted = words.lowercased()
    let having = labels.filter { $0.text.lowercased().contains(wanted) }
    let equal = having.filter { $0.text.lowercased() == wanted }
    let found = equal.isEmpty ? having : equal
    func failure(_ cause: String, _ candidates: [Label], _ advice: String) -> Failure {
      let names = candidates.prefix(Self.mostNamed).map {
        "'\($0.text.oneLine.shortened(to: 60))' at \($0.timeMs.instantText())"
      }
      let more = candidates.count > names.count ? ", and \(candidates.count - names.count) others" : ""
      return Failure(
        .input, "cut", "session \(session)", "\(cause)\(names.joined(separator: ", "))\(more)", advice: advice)
    }
    guard let first = found.first else {
      let shown = "'\(words.oneLine.shortened(to: 60))'"
      if labels.isEmpty { throw failure("it has no labels, so none has \(shown)", [], "name the instant with --from") }
      throw failure("no label has \(shown); its labels are ", labels, "name one of them, or the instant with --from")
    }
    guard Set(found.map { $0.text.lowercased() }).count == 1 else {
      throw failure(
        "\(found.count) labels have '\(words.oneLine.shortened(to: 60))': ", found,
        "name one with its whole text, or its instant with --from")
    }
    label = first
    others = found.dropFirst().map(\.timeMs).filter { $0 > first.timeMs }
    let next = labels.first { $0.kind == first.kind && $0.timeMs > first.timeMs }?.timeMs
    let lengthMs = (first.endMs ?? next ?? first.timeMs + Self.lengthMs) - first.timeMs
    fromMs = max(first.timeMs, startMs)
    toMs = fromMs + lengthMs
  }
}

extension Clip {
  /// Returns the clip that begins at a label of a session, and a note on other labels with its text.
  ///
  /// - Parameters:
  ///   - words: the text of the label, or a part of it.
  ///   - path: the session, `OUTPUT/SESSION`.
  ///   - lengthMs: of the clip; nil for its end, or for the span of the label: up to its end, else up to the next one of its kind, else
  ///     ten seconds.
  /// - Throws: ``Failure`` if not exactly one text matches; ``BadSession``.
  package func beginning(atLabel words: String, of path: String, lengthMs: Int64?) throws -> (clip: Clip, note: String?)
  {
    let directory = try SessionDirectory(at: path)
    let whole = try directory.segments(of: .whole)
    let part = try LabelPart(
      words, in: whole.marks.labels, of: directory.session, startMs: whole.bounds.lowerBound)
    let end = lengthMs.map { part.fromMs + $0 } ?? part.toMs
    let clip = Clip(
      from: .unixMs(part.fromMs), to: lengthMs == nil ? to ?? .unixMs(end) : .unixMs(end), speed: speed, idle: idle,
      keyFrames: keyFrames)
    let instants = part.others.prefix(3).map { $0.instantText() }.joined(separator: ", ")
    let more = part.others.count > 3 ? " and \(part.others.count - 3) more" : ""
    return (
      clip,
      part.others.isEmpty
        ? nil : "the clip is of the first label with this text; others are at \(instants)\(more): name one with --from"
    )
  }
}
