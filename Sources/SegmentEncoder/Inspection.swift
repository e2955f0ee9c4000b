// A batch as `inspect` shows it: read, decoded and put on the timeline, but not encoded.

import Encoding
import FrameBatches
import JSON
import Sessions

package struct InspectedBatch: Sendable, Equatable {
  /// A captured frame, and how long it is on screen in all.
  package struct Frame: Sendable, Equatable {
    package let source: String
    package let timeMs: Int64
    package fileprivate(set) var holdMs: Int64
    package let width: Int
    package let height: Int
    /// The unrecorded time behind it.
    package fileprivate(set) var gapAfterMs: Int64 = 0
    package fileprivate(set) var note: String?
  }

  package let batch: String
  /// The name of the batch's format.
  package let format: String
  package let session: SessionID
  package let intervalMs: Int64
  package let capture: Batch.Capture
  package let isFinal: Bool
  package let frames: [Frame]
  package let refused: [RefusedFrame]
  /// Warnings about how the batch is written.
  package let warnings: [String]
  package let segments: Int

  package var startMs: Int64 { frames[0].timeMs }
  /// When the last frame stops being on screen.
  package var endMs: Int64 { frames[frames.count - 1].timeMs + frames[frames.count - 1].holdMs }

  /// One line of JSON.
  package var json: String {
    JSONValue.object([
      "batch": .string(batch), "format": .string(format), "session": .string(session.description),
      "intervalMs": .number(intervalMs), "capture": .string(capture.rawValue), "final": .bool(isFinal),
      "startMs": .number(startMs), "endMs": .number(endMs), "segments": .number(segments),
      "frames": .array(frames.map(\.json)), "refused": .array(refused.map(\.json)),
      "warnings": .array(warnings.map { .string($0) }),
      "gaps": .array(
        frames.filter { $0.gapAfterMs > 0 }.map {
          let startMs = $0.timeMs + $0.holdMs
          return .object(["startMs": .number(startMs), "endMs": .number(startMs + $0.gapAfterMs)])
        }),
    ]).line
  }

  /// Reads a batch and decodes its frames.
  ///
  /// - Parameters:
  ///   - path: a directory or a file; `-` is standard input.
  ///   - files: the images that the batch consists of; then `path` is their directory, which names the batch.
  ///   - session: for a batch that does not name its own.
  /// - Throws: ``BadBatch`` where it would be quarantined, ``DiskError``.
  package init(
    reading path: String, files: [String] = [], session: String? = nil, _ options: BatchEncoder.Options
  ) throws {
    let source = try BatchReader(
      reading: path, files: files, session: session, limits: options.limits, unpacker: options.decoders)
    var digest = BatchDigest(of: source.batch)
    var sink = Sink(refused: source.batch.refused)
    try FrameLoop.walk(
      source, options, nil, digest: &digest, into: &sink, isCancelled: { false })
    frames = sink.frames
    refused = sink.refused
    segments = sink.segments
    guard !frames.isEmpty else { throw BadBatch(undecodable: source.batch, refused) }
    batch = source.batch.name
    warnings = source.batch.warnings
    format = source.format
    self.session = source.batch.session
    intervalMs = source.batch.intervalMs
    capture = source.batch.capture
    isFinal = source.batch.isFinal
  }

  private struct Sink: ShotConsumer {
    var frames: [Frame] = []
    var refused: [RefusedFrame]
    var segments = 0
    var notes: [Int64: String] = [:]

    mutating func refuse(_ frame: RefusedFrame) { refused.append(frame) }

    mutating func note(_ text: String, on capture: Capture) { notes[capture.timeMs] = text }

    mutating func show(_ still: SourceFrame, in shots: [FrameHold], _ isCancelled: () -> Bool) throws {
      for shot in shots {
        if shot.opensSegment { segments += 1 }
        if shot.status == .captured {
          frames.append(
            Frame(
              source: shot.capture.source, timeMs: shot.capture.timeMs, holdMs: 0, width: shot.capture.width,
              height: shot.capture.height, note: notes[shot.capture.timeMs]))
        }
        frames[frames.count - 1].holdMs += shot.holdMs
        frames[frames.count - 1].gapAfterMs += shot.closingGapMs ?? 0
      }
    }
  }
}

extension InspectedBatch.Frame {
  fileprivate var json: JSONValue {
    var members: [String: JSONValue] = [
      "source": .string(source), "timeMs": .number(timeMs), "holdMs": .number(holdMs), "width": .number(width),
      "height": .number(height),
    ]
    members["note"] = note.map { .string($0) }
    return .object(members)
  }
}
