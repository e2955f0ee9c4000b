// Makes a batch's segments visible: first all their videos, then all their manifests, each create-once and durable.
// Safe to do again after a crash at any point, and safe to do twice at once.

import Glibc

/// A segment on disk, not yet under its name.
struct StagedSegment {
  /// Where its bytes lie.
  let file: String
  /// At least one.
  let shots: [Shot]
  let codec: String
  let codedWidth: Int
  let codedHeight: Int
  let size: Int
  let sha256: String
  let samples: Int
  let refused: [RefusedFrame]
  /// By source name.
  let notes: [String: String]

  init(_ segment: EncodedSegment, file: String, refused: [RefusedFrame], notes: [String: String]) throws {
    self.file = file
    shots = segment.shots
    codec = segment.codec
    codedWidth = segment.codedWidth
    codedHeight = segment.codedHeight
    size = segment.bytes.count
    sha256 = try SHA256.hex(of: segment.bytes)
    samples = segment.samples
    self.refused = refused
    self.notes = notes
    try DurableFile.create(file, segment.bytes)
  }

  var startMs: Int64 { shots[0].startMs }
  var endMs: Int64 { shots[shots.count - 1].endMs }
}

/// What became of a batch that is not bad.
public struct Receipt: Sendable, Equatable, Codable {
  public let batch: String
  public let session: String
  public let startMs: Int64
  public let endMs: Int64
  public let segments: Int
  /// Captured frames.
  public let frames: Int
  public let refused: [RefusedFrame]
  public let bytes: Int
  /// Whether all of it had been published before.
  public let duplicate: Bool

  init(_ manifests: [SegmentManifest], batch: String, duplicate: Bool) {
    self.batch = batch
    session = manifests[0].session
    startMs = manifests[0].startMs
    endMs = manifests[manifests.count - 1].endMs
    segments = manifests.count
    frames = manifests.reduce(0) { $0 + $1.frames.count { $0.status == .captured } }
    refused = manifests.flatMap(\.refused)
    bytes = manifests.reduce(0) { $0 + $1.bytes }
    self.duplicate = duplicate
  }
}

extension Receipt {
  /// One line of JSON.
  public var json: String {
    get throws { String(decoding: try JSONText.encode(self).dropLast(), as: UTF8.self) }
  }
}

struct Publication {
  let staging: Staging
  let index: SessionIndex

  /// The receipt of a batch that is published already, whole; nil when there is work to do.
  func receipt(for source: OpenBatch) throws -> Receipt? {
    let batch = source.batch
    let directory = SessionDirectory(output: staging.output, session: batch.session)
    // Only what starts within the batch's time can be its own; hashing it costs as much as reading it.
    let near = try directory.manifests(near: batch.frames[0].timeMs..<batch.endMs)
      .filter { $0.startMs >= batch.frames[0].timeMs }
    guard !near.isEmpty else { return nil }
    let digest = try BatchDigest.of(source)
    let own = near.filter { $0.batchDigest == digest }
    guard let first = own.first, own.count == first.parts else { return nil }
    // The index may be older than the segments when the worker died between the two.
    try directory.locked { try index.update(directory, temporary: staging.temporaryFile()) }
    return Receipt(own, batch: batch.name, duplicate: true)
  }

  /// Publishes all segments of a batch and brings the session's index up to date.
  ///
  /// - Throws: ``BadBatch`` when something else has been published for the same time.
  func publish(_ segments: [StagedSegment], of batch: Batch, digest: String, settings: EncoderSettings) throws
    -> Receipt
  {
    let manifests = segments.enumerated().map { index, segment in
      SegmentManifest(
        segment, of: batch, digest: digest, part: index + 1, parts: segments.count, settings: settings)
    }
    let directory = SessionDirectory(output: staging.output, session: batch.session)
    return try directory.locked {
      let published = try directory.manifests(near: manifests[0].startMs..<manifests[manifests.count - 1].endMs)
      for manifest in manifests { try Conflict.check(manifest, against: published) }
      let own = Set(published.filter { $0.batchDigest == digest }.map(\.startMs))
      let missing = zip(segments, manifests).filter { !own.contains($1.startMs) }
      for (segment, manifest) in missing { try place(segment.file, as: directory.path + "/" + manifest.file) }
      try Directory(opening: directory.path).sync()
      for (_, manifest) in missing {
        let file = staging.temporaryFile()
        try DurableFile.create(file, try JSONText.encode(manifest))
        try place(file, as: directory.path + "/" + SegmentName.manifest(manifest.startMs))
      }
      try Directory(opening: directory.path).sync()
      try index.update(directory, temporary: staging.temporaryFile())
      return Receipt(manifests, batch: batch.name, duplicate: missing.isEmpty)
    }
  }

  /// Gives a staged file its name. One that is there without a manifest was left by a worker that died, and is replaced.
  private func place(_ file: String, as target: String) throws(DiskError) {
    if try DurableFile.link(file, to: target) {
      try check("unlink", file) { unlink(file) }
    } else {
      try check("rename", target) { rename(file, target) }
    }
  }
}

/// What published time a new segment may touch.
enum Conflict {
  static func check(_ new: SegmentManifest, against published: [SegmentManifest]) throws {
    for old in published {
      if old.batchDigest == new.batchDigest && old.startMs == new.startMs && old.frames == new.frames { continue }
      guard min(old.endMs, new.endMs) > max(old.startMs, new.startMs), !isSeam(old, new) else { continue }
      let cause =
        old.batchDigest == new.batchDigest
        ? "part of this batch was published with other settings"
        : "batch \(old.batch) with other content was published for that time"
      throw BadBatch(
        "publish", new.batch, "\(new.file) overlaps \(old.file): \(cause)",
        advice: "send each instant of a session once; or move the published segments away and retry")
    }
  }

  /// Whether two overlapping segments are the end of one batch and the beginning of the next, less than half an
  /// interval apart, so that cutting the earlier one's last picture short closes the seam.
  private static func isSeam(_ one: SegmentManifest, _ other: SegmentManifest) -> Bool {
    guard one.batchDigest != other.batchDigest, one.startMs != other.startMs else { return false }
    let (earlier, later) = one.startMs < other.startMs ? (one, other) : (other, one)
    return earlier.part == earlier.parts && later.part == 1 && later.endMs > earlier.endMs
      && 2 * (earlier.endMs - later.startMs) < earlier.intervalMs && later.startMs > earlier.lastShownMs
  }
}

extension SegmentManifest {
  init(
    _ staged: StagedSegment, of batch: Batch, digest: String, part: Int, parts: Int, settings: EncoderSettings
  ) {
    let shots = staged.shots
    format = Self.format
    session = batch.session.description
    self.batch = batch.name
    batchDigest = digest
    self.part = part
    self.parts = parts
    file = SegmentName.video(staged.startMs)
    startMs = staged.startMs
    endMs = staged.endMs
    durationMs = staged.endMs - staged.startMs
    width = shots[0].capture.width
    height = shots[0].capture.height
    codedWidth = staged.codedWidth
    codedHeight = staged.codedHeight
    codec = staged.codec
    timescale = MediaTime.timescale
    bytes = staged.size
    sha256 = staged.sha256
    samples = staged.samples
    frames = shots.map {
      Frame(
        timeMs: $0.capture.timeMs, holdMs: $0.holdMs, source: $0.capture.source, status: $0.status,
        note: staged.notes[$0.capture.source])
    }
    refused = staged.refused
    intervalMs = batch.intervalMs
    gapAfterMs = shots[shots.count - 1].closing?.gapAfterMs ?? 0
    final = batch.isFinal && part == parts
    encoder = settings
    metadata = batch.metadata
  }
}
