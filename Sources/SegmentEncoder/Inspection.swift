// A batch as `encode --dry-run` shows it: read, decoded and put on the timeline, but not encoded.

import Encoding
import FileSystem
import FrameBatches
import JSON
import Sessions

package struct InspectedBatch {
  /// A captured frame, and how long it is on screen in all.
  package struct Frame {
    package let capture: Capture
    package fileprivate(set) var holdMs: Int64 = 0
    /// The unrecorded time after it.
    package fileprivate(set) var gapAfterMs: Int64 = 0
    package let note: String?
  }

  package let batch: Batch
  /// The name of the batch's format.
  package let format: String
  package let frames: [Frame]
  /// The frames that were refused before and while decoding.
  package let refused: [RefusedFrame]
  /// The number of segments.
  package let segments: Int
  package let warnings: [String]
  /// The reason why a worker would keep the batch: most of its pictures would not be shown.
  package let loss: BadBatch?

  package var startMs: Int64 { frames[0].capture.timeMs }
  /// The end of the last frame's hold in unix milliseconds.
  package var endMs: Int64 { frames[frames.count - 1].capture.timeMs + frames[frames.count - 1].holdMs }

  /// One line of JSON.
  package var json: String { value.line }

  var value: JSONValue {
    let pointers = batch.pointers.events.count
    return JSONValue.object([
      "batch": .string(batch.name), "format": .string(format), "session": .string(batch.session.description),
      "intervalMs": .number(batch.intervalMs), "capture": .string(batch.capture.rawValue),
      "final": .bool(batch.isFinal),
      "startMs": .number(startMs), "endMs": .number(endMs), "segments": .number(segments),
      "frames": .array(frames.map(\.json)), "refused": .array(refused.map(\.json)),
      "warnings": .array(warnings.map { .string($0) }),
      "gaps": .array(
        frames.filter { $0.gapAfterMs > 0 }.map {
          let startMs = $0.capture.timeMs + $0.holdMs
          return .object(["startMs": .number(startMs), "endMs": .number(startMs + $0.gapAfterMs)])
        }),
    ]).setting(pointers > 0 ? ["touches": .number(pointers)] : [:])
      .setting(batch.labels.isEmpty ? [:] : ["labels": .number(batch.labels.count)])
  }

  /// Reads a batch and decodes the frames of its sessions.
  ///
  /// - Parameters:
  ///   - path: a directory or a file; `-` is standard input.
  ///   - files: the images that the batch consists of; then `path` is their directory, which names the batch.
  ///   - parts: the limits of the batches that a folder is split into.
  /// - Returns: the sessions that would be published, those that would be refused, and the labels that would be added to a published
  ///   session: at least one of the first and the last.
  /// - Throws: ``BadBatch`` where the batch would be quarantined, ``DiskError``.
  package static func sessions(
    of path: String, files: [String] = [], _ options: BatchEncoder.Options, _ parts: PartLimits? = nil
  ) throws -> (found: [InspectedBatch], refused: [RefusedSession], additions: [LabelAddition]) {
    var input = options.input
    (input.takesFew, input.takesAdditions) = (true, true)
    let batch = try BatchSessions(
      reading: path, files: files, options: input, limits: options.limits, unpacker: options.decoders)
    let batches = try parts.map(batch.parts) ?? [batch]
    var refused = batches.flatMap(\.refused)
    var found: [InspectedBatch] = []
    for source in batches.flatMap(\.readers) {
      do {
        guard let videos = source.batch.videos else {
          found.append(try InspectedBatch(source, options))
          continue
        }
        try FormatLibrary.load()
        found.append(
          try InspectedBatch(source, FinishedSegments(source, videos, decoders: options.decoders, .never)))
      } catch let bad as BadBatch {
        refused.append(RefusedSession(session: source.batch.session.description, error: bad))
      }
    }
    if found.isEmpty, let first = refused.first { throw first.error }
    return (found, refused, batch.additions)
  }

  private init(_ source: BatchReader, _ options: BatchEncoder.Options) throws {
    batch = source.batch
    format = source.format
    var digest = BatchDigest(of: batch)
    var sink = Sink(refused: batch.refused)
    var last: LastFrame?
    let facts = try FrameLoop.walk(
      source, options, nil, after: &last, digest: &digest, into: &sink, cancellation: .never
    ).facts
    (frames, refused, segments) = (sink.frames, sink.refused, sink.segments)
    warnings =
      batch.warnings + facts.warnings + (TimelineAdvice.text(for: sink.holds, of: batch, options).map { [$0] } ?? [])
    guard !frames.isEmpty else { throw BadBatch(undecodable: batch, refused) }
    let hidden = batch.frames.count - frames.count - refused.count(where: \.isCompanion)
    loss = PictureLoss.error(of: batch, hidden: hidden, refused)
  }

  /// Copies finished segments into memory, one video after the other.
  private init(_ source: BatchReader, _ finished: FinishedSegments) throws {
    var finished = finished
    var sink = Sink(refused: [])
    var warnings = source.batch.warnings
    var (videos, last): (Int, PublishedSegment?) = (0, nil)
    while let video = try finished.next({}) {
      guard let manifests = try finished.manifests(of: video, keep: { .bytes($0) }) else { continue }
      videos += 1
      warnings += video.warnings.map { "\(video.name): \($0)" }
      for manifest in manifests {
        if let gap = last?.gap(before: manifest.segment) {
          sink.addGap(gap.endMs - gap.startMs)
        }
        sink.notes.merge(manifest.staged.notes) { $1 }
        sink.add(manifest.staged.holds)
        last = manifest.segment
      }
    }
    batch = source.batch
    format = "\(source.format) (\(count(videos, "video")))"
    (frames, segments, self.warnings) = (sink.frames, sink.segments, warnings)
    refused = finished.allRefused
    loss = finished.loss(shown: videos)
    guard !frames.isEmpty else { throw finished.nothingPublished }
  }

  private struct Sink: HoldConsumer {
    var frames: [Frame] = []
    var refused: [RefusedFrame]
    var segments = 0
    var holds: [FrameHold] = []
    var notes: [Int64: String] = [:]

    mutating func refuse(_ frame: RefusedFrame) { refused.append(frame) }

    mutating func leave(last count: Int) {
      refused.replaceSubrange((refused.count - count)..., with: refused.suffix(count).map(\.leftForLater))
    }

    mutating func note(_ text: String, on capture: Capture) { notes[capture.timeMs] = text }

    mutating func show(
      _ picture: SourceFrame, in holds: [FrameHold], nextDiffers: Bool, _ cancellation: Cancellation
    ) throws { add(holds) }

    /// Adds unrecorded time behind the last frame, as far as no hold tells of it.
    mutating func addGap(_ gapMs: Int64) { frames[frames.count - 1].gapAfterMs = gapMs }

    mutating func add(_ holds: [FrameHold]) {
      self.holds += holds
      for hold in holds {
        if hold.opensSegment { segments += 1 }
        if hold.status == .captured {
          frames.append(Frame(capture: hold.capture, note: notes[hold.capture.timeMs]))
        }
        guard !frames.isEmpty else { continue }
        frames[frames.count - 1].holdMs += hold.holdMs
        frames[frames.count - 1].gapAfterMs += hold.closingGapMs ?? 0
      }
    }
  }
}

extension InspectedBatch.Frame {
  fileprivate var json: JSONValue {
    var members: [String: JSONValue] = [
      "source": .string(capture.source), "timeMs": .number(capture.timeMs), "holdMs": .number(holdMs),
      "width": .number(capture.width), "height": .number(capture.height),
    ]
    members["note"] = note.map { .string($0) }
    return .object(members)
  }
}
