import FileSystem
import FrameBatches

/// Collects a batch's frames into segments, and hands each segment over when it closes.
package struct SegmentCollector: HoldConsumer, ~Copyable {
  /// Takes a segment, the frames that were refused since the last one, and the notes on frames by capture in unix milliseconds.
  package typealias Output = (EncodedSegment, [RefusedFrame], [Int64: String]) throws -> Void

  private let settings: EncoderSettings
  private let profile: Profile?
  /// Called for each frame that is encoded or refused.
  private let advance: () -> Void
  private let output: Output
  /// Frames that were refused since the last segment closed.
  package private(set) var refused: [RefusedFrame]
  /// Frames that are left for a later run.
  package private(set) var left: [RefusedFrame] = []
  private var notes: [Int64: String] = [:]
  private var open: SegmentWriter?

  /// - Parameter refused: the frames that the batch's reader refused.
  package init(
    _ settings: EncoderSettings, profile: Profile?, refused: [RefusedFrame], advance: @escaping () -> Void,
    output: @escaping Output
  ) {
    (self.settings, self.profile, self.refused) = (settings, profile, refused)
    (self.advance, self.output) = (advance, output)
  }

  package mutating func refuse(_ frame: RefusedFrame) {
    advance()
    refused.append(frame)
  }

  package mutating func leave(last count: Int) {
    left = refused.suffix(count).map(\.leftForLater)
    refused.removeLast(count)
  }

  package mutating func note(_ text: String, on capture: Capture) { notes[capture.timeMs] = text }

  package mutating func show(
    _ picture: SourceFrame, in holds: [FrameHold], nextDiffers: Bool, _ cancellation: Cancellation
  ) throws {
    advance()
    for (index, hold) in holds.enumerated() {
      try cancellation.check()
      if hold.opensSegment { open = SegmentWriter(first: picture, settings: settings, profile: profile) }
      let isLast = index == holds.count - 1 && hold.closingGapMs == nil
      try open?.show(picture, in: hold, nextDiffers: nextDiffers && isLast)
      if hold.closingGapMs != nil { try close() }
    }
  }

  private mutating func close() throws {
    guard let writer = open.take() else { return }
    let segment = try writer.finish()
    let writing = profile?.start(.write)
    try output(segment, refused, notes)
    writing?.stop()
    refused = []
    // The last frame may continue in the next segment.
    if let last = segment.holds.last { notes = notes.filter { $0.key >= last.capture.timeMs } }
  }
}
