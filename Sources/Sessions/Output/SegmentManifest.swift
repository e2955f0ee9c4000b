import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// The facts of one segment: `segment-<start>.json`. Its presence says that the segment is whole.
package struct SegmentManifest {
  /// Maximum size of a file in bytes.
  package static let maximumBytes = 8 << 20
  /// Maximum size of a segment's file, far above that of some seconds of screenshots.
  package static let maximumVideoBytes = 128 << 20

  /// The facts that other segments and the session need.
  package let segment: PublishedSegment
  package let staged: StagedSegment
  private let batch: Batch

  package init(
    _ staged: StagedSegment, of batch: Batch, digest: String, part: Int, parts: Int, health: SegmentHealth? = nil,
    encoder: JSONValue = .null
  ) {
    self.staged = staged
    self.batch = batch
    segment = PublishedSegment(
      of: batch, digest: digest, part: part, parts: parts, holds: staged.holds, codedWidth: staged.codedWidth,
      codedHeight: staged.codedHeight, bytes: staged.size, sha256: staged.sha256, samples: staged.samples,
      health: health, labels: LabelCounts(staged.labels), encoder: encoder)
  }

  /// Returns the manifests of all segments of a batch.
  package static func all(
    _ segments: [StagedSegment], of batch: Batch, digest: String, _ settings: EncoderSettings
  ) -> [SegmentManifest] {
    all(segments, of: batch, digest: digest, encoder: settings.json)
  }

  /// - Parameter encoder: all that decides the bytes of the segments besides their pictures.
  static func all(
    _ segments: [StagedSegment], of batch: Batch, digest: String, encoder: JSONValue
  ) -> [SegmentManifest] {
    let health = SegmentHealth.shares(of: segments.map(\.holds), in: batch)
    return zip(segments, health).enumerated().map { index, item in
      SegmentManifest(
        item.0, of: batch, digest: digest, part: index + 1, parts: segments.count, health: item.1, encoder: encoder)
    }
  }

  /// Frames that could not be decoded.
  package var refused: [RefusedFrame] { staged.refused }

  /// Returns the notes on captured frames, each note once.
  package static func notes(in manifests: [SegmentManifest]) -> [String] {
    let noted = manifests.flatMap { manifest in
      manifest.staged.holds.filter { $0.status == .captured }.compactMap { hold in
        manifest.staged.notes[hold.capture.timeMs].map { (note: $0, source: hold.capture.source) }
      }
    }
    let all = Dictionary(grouping: noted, by: \.note).sorted { $0.key < $1.key }.map { note, frames in
      frames.count == 1 ? "\(frames[0].source) \(note)" : "\(frames[0].source) and \(frames.count - 1) more \(note)"
    }
    return all.count > 20 ? all.prefix(20) + ["and \(all.count - 20) more notes in the manifests"] : all
  }

  /// The member that has the digest of the others.
  package static let sealKey = "manifestSha256"

  /// Returns the text of a manifest's file: the manifest with the digest of its other members.
  package static func text(of json: JSONValue) -> [UInt8] {
    json.setting([sealKey: .string(seal(of: json))]).bytes() + [UInt8(ascii: "\n")]
  }

  /// Returns the digest of a manifest without the member that holds it.
  package static func seal(of json: JSONValue) -> String {
    guard case .object(var members) = json else { return "" }
    members[sealKey] = nil
    return SHA256.hex(of: JSONValue.object(members).bytes())
  }

  package var json: JSONValue {
    var further: [String: JSONValue] = [:]
    further["touches"] = staged.touches?.json
    if batch.clockOffsetMs != 0 { further["clockOffsetMs"] = .number(batch.clockOffsetMs) }
    if segment.isEndOpen { further["endIsOpen"] = .bool(true) }
    if segment.capturesChanges { further["capture"] = .string(Batch.Capture.onChange.rawValue) }
    further["timeZone"] = batch.timeZone.map(JSONValue.string)
    if !staged.pages.isEmpty {
      further[SegmentPages.key] = SegmentPages.json(staged.pages, in: segment.startMs..<segment.endMs)
    }
    if !staged.labels.isEmpty { further[SegmentLabels.key] = staged.labels.json }
    further[SegmentHealth.key] = segment.health?.json
    return facts.setting(further)
  }

  private var facts: JSONValue {
    .object([
      "format": .string(PublishedSegment.format), "session": .string(batch.session.description),
      "batch": .string(segment.batch),
      "batchDigest": .string(segment.batchDigest), "part": .number(segment.part), "parts": .number(segment.parts),
      "file": .string(segment.file), "startMs": .number(segment.startMs), "endMs": .number(segment.endMs),
      "durationMs": .number(segment.durationMs), "width": .number(segment.width), "height": .number(segment.height),
      "codedWidth": .number(segment.codedWidth), "codedHeight": .number(segment.codedHeight),
      "codec": .string(staged.codec), "timescale": .number(MediaTime.timescale), "bytes": .number(segment.bytes),
      "sha256": .string(segment.sha256), "samples": .number(segment.samples),
      "frames": .array(frames), "refused": .array(refused.map(\.json)),
      "intervalMs": .number(segment.intervalMs), "gapAfterMs": .number(segment.gapAfterMs),
      "final": .bool(segment.isFinal), "encoder": segment.encoder, "metadata": metadata,
    ])
  }

  /// The producer's metadata, with the step of its trace. A member that the producer wrote itself stays.
  private var metadata: JSONValue {
    guard let traceParent = batch.traceParent, batch.metadata.object?[TraceParent.key] == nil else {
      return batch.metadata
    }
    return batch.metadata.setting([TraceParent.key: .string(traceParent.description)])
  }

  /// Returns the step of a trace that the batch of a manifest has stated.
  static func traceParent(in json: JSONValue) -> TraceParent? {
    json.object?["metadata"]?.object?[TraceParent.key]?.string.flatMap { TraceParent($0) }
  }

  private var frames: [JSONValue] {
    zip(staged.holds, PaintedMasks.listed(staged.holds.map(\.capture.masks))).map(json)
  }

  private func json(_ hold: FrameHold, _ masks: [PictureRegion]) -> JSONValue {
    var members: [String: JSONValue] = [
      "timeMs": .number(hold.capture.timeMs), "holdMs": .number(hold.holdMs), "source": .string(hold.capture.source),
      "status": .string(hold.status.rawValue),
    ]
    members[ChangedBlocks.key] = hold.changedBlocks.map { .number($0) }
    members["note"] = staged.notes[hold.capture.timeMs].map { .string($0) }
    if !masks.isEmpty { members[PaintedMasks.key] = PaintedMasks.json(masks) }
    return .object(members)
  }
}

extension RefusedFrame {
  package var json: JSONValue { .object(["source": .string(source), "reason": .string(reason)]) }
}

extension SegmentManifest {
  /// Reads a manifest file.
  ///
  /// - Parameter path: its name in messages.
  /// - Throws: ``DamagedOutput``.
  package static func read(
    _ bytes: [UInt8], of startMs: Int64, path: String
  ) throws(DamagedOutput) -> (segment: PublishedSegment, json: JSONValue) {
    do {
      let json = try JSONParser.parse(bytes)
      return (try segment(json, of: startMs), json)
    } catch {
      throw DamagedOutput(path: path, cause: "\(error)")
    }
  }

  /// Like ``read(_:of:path:)``, with ``seal(of:)`` of the manifest. A text as we write it is hashed in place.
  static func readSealed(
    _ bytes: [UInt8], of startMs: Int64, path: String
  ) throws(DamagedOutput) -> (segment: PublishedSegment, json: JSONValue, seal: String) {
    do {
      let (json, rest) = try JSONParser.parse(bytes, without: sealKey)
      let segment = try segment(json, of: startMs)
      guard let rest else { return (segment, json, seal(of: json)) }
      var sum = SHA256()
      sum.update(rest.0)
      sum.update(rest.1)
      return (segment, json, sum.finish())
    } catch {
      throw DamagedOutput(path: path, cause: "\(error)")
    }
  }

  private static func segment(_ json: JSONValue, of startMs: Int64) throws(JSONError) -> PublishedSegment {
    let segment = try PublishedSegment(json)
    guard segment.startMs == startMs else { throw JSONError("of another segment") }
    return segment
  }
}
