// The loop over a batch's frames, for encoding and inspecting: reads each frame once, in order.

import FileSystem
import FrameBatches

package enum FrameLoop {
  /// The results of a walk.
  package struct Result {
    /// The number of frames that look like the one before, which are not encoded.
    package let unchanged: Int
    /// The facts of all frames.
    package let facts: PictureFacts
    /// The screen since its last change; nil unless ``EncodingOptions/watchesScreen``, or if the recorder captures on change.
    package let screen: StillScreen?
  }

  /// - Parameter last: the frame that the previous batch of this thread ended with; becomes that of this batch.
  package static func walk<Sink: HoldConsumer & ~Copyable>(
    _ source: BatchReader, _ options: EncodingOptions, _ cache: KeyFrameCache?, after last: inout LastFrame?,
    digest: inout BatchDigest, into sink: inout Sink, cancellation: Cancellation
  ) throws -> Result {
    let batch = source.batch
    var sequence = FrameSequence(
      of: batch.session, Timeline(of: batch, options), options, cache, after: last.take(),
      cancellation)
    defer { last = sequence.last }
    // The instants of a folder that no frame shows.
    var lost: Set<Int64> = []
    for frame in batch.frames {
      try cancellation.check()
      let reading = options.profile?.start(.read)
      let images = try source.images(of: frame)
      let identity = digest.add(frame, images)
      reading?.stop()
      try sequence.append(frame, images, identity, into: &sink, cancellation)
      guard batch.folder != nil else { continue }
      if sequence.shownMs != frame.timeMs {
        lost.insert(frame.timeMs)
      } else if !lost.isEmpty {
        lost.remove(frame.timeMs)
      }
    }
    var endMs = batch.endMs
    if !lost.isEmpty, let lastMs = sequence.shownMs {
      endMs = batch.end(afterShown: lastMs)
      if endMs != batch.endMs { sink.leave(last: batch.frames.count { $0.timeMs > lastMs }) }
      digest = digest.leavingOut(lost, of: batch, endMs: endMs)
    }
    let screen = options.watchesScreen && batch.capture != .onChange ? try sequence.screen() : nil
    try sequence.finish(endMs: endMs, into: &sink, cancellation)
    return Result(unchanged: sequence.unchanged, facts: sequence.facts, screen: screen)
  }
}

extension BadBatch {
  /// The error of a batch without a decodable frame.
  package init(undecodable batch: Batch, _ refused: [RefusedFrame]) {
    let undecoded = refused.compactMap { frame -> (source: String, refusal: Refusal)? in
      if case .undecoded(let refusal) = frame.kind { (frame.source, refusal) } else { nil }
    }
    let formats = undecoded.compactMap { frame -> (source: String, format: OtherImage)? in
      if case .convert(let format)? = frame.refusal.remedy { (frame.source, format) } else { nil }
    }
    let counts = formats.reduce(into: [OtherImage: Int]()) { $0[$1.format, default: 0] += 1 }
    let named = OtherImage.allCases.compactMap { format in counts[format].map { "\($0) \(format.rawValue)" } }
    let most = OtherImage.allCases.max { counts[$0, default: 0] < counts[$1, default: 0] }
    let limits = LimitAdvice(
      undecoded.compactMap { if case .raise(let advice)? = $0.refusal.remedy { advice } else { nil } })
    let advice: String
    if let most, let example = formats.first(where: { $0.format == most }) {
      advice = most.advice(for: example.source)
    } else {
      advice =
        limits?.text ?? "check that the recorder writes whole images, under the names that it lists"
    }
    // The reason of a frame says more than that of another file. The advice has its remedy already.
    let cause =
      undecoded.first.map { named.isEmpty && limits == nil ? $0.refusal.text : $0.refusal.fault }
      ?? refused.first?.reason
    self.init(
      "decode", batch.name,
      "none of its \(batch.frames.count) frames can be decoded"
        + (named.isEmpty ? "" : ": " + named.joined(separator: ", ")) + (cause.map { "; \($0)" } ?? ""),
      advice: advice)
  }
}
