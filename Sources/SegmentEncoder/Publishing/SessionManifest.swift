// The session so far: a view of its segments' manifests that can always be rebuilt from them. Pure.

public struct SessionManifest: Sendable, Equatable, Codable {
  public struct Segment: Sendable, Equatable, Codable {
    public let file: String
    public let startMs: Int64
    public let durationMs: Int64
    public let width: Int
    public let height: Int
    public let bytes: Int
    public let sha256: String
    /// How many frames it shows, continued ones included.
    public let frames: Int
  }

  public struct Gap: Sendable, Equatable, Codable {
    public let startMs: Int64
    public let endMs: Int64
  }

  public let format: String
  public let session: String
  public let startMs: Int64
  public let endMs: Int64
  public let durationMs: Int64
  /// Whether the segment that ends the session is there.
  public let complete: Bool
  public let segments: [Segment]
  public let gaps: [Gap]
  /// Captured frames; one that continues in the next segment counts once.
  public let frames: Int
  public let bytes: Int

  /// - Parameter segments: at least one, in the order of their starts.
  init?(session: SessionID, segments: [SegmentSummary]) {
    guard let first = segments.first, let last = segments.last else { return nil }
    format = "session-manifest/1"
    self.session = session.description
    startMs = first.startMs
    endMs = last.endMs + last.gapAfterMs
    durationMs = endMs - startMs
    complete = last.final
    self.segments = segments.map {
      Segment(
        file: $0.file, startMs: $0.startMs, durationMs: $0.durationMs, width: $0.width, height: $0.height,
        bytes: $0.bytes, sha256: $0.sha256, frames: $0.frames.count)
    }
    var gaps = zip(segments, segments.dropFirst()).compactMap { $0.gap(before: $1) }
    if last.gapAfterMs > 0 { gaps.append(Gap(startMs: last.endMs, endMs: endMs)) }
    self.gaps = gaps
    frames = segments.reduce(0) { $0 + $1.frames.count { $0.status == .captured } }
    bytes = segments.reduce(0) { $0 + $1.bytes }
  }

  /// For stock ffmpeg: each file lasts until the next one starts, so that seams close and gaps are held.
  var concatScript: String {
    var text = "ffconcat version 1.0\n"
    for (index, segment) in segments.enumerated() {
      let next = index + 1 < segments.count ? segments[index + 1].startMs : segment.startMs + segment.durationMs
      text += "file \(segment.file)\nduration \(Self.seconds(next - segment.startMs))\n"
    }
    return text
  }

  private static func seconds(_ ms: Int64) -> String {
    let fraction = String(ms % 1_000)
    return "\(ms / 1_000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
  }
}

/// What the session needs to know of a segment: a part of ``SegmentManifest``.
struct SegmentSummary: Sendable, Equatable, Codable {
  struct Frame: Sendable, Equatable, Codable { let status: Shot.Status }

  let file: String
  let batchDigest: String
  let startMs: Int64
  let endMs: Int64
  let durationMs: Int64
  let width: Int
  let height: Int
  let bytes: Int
  let sha256: String
  let frames: [Frame]
  let intervalMs: Int64
  let gapAfterMs: Int64
  let final: Bool

  /// The unrecorded time up to the next segment. Within a batch any distance is one; batches meet with some jitter,
  /// and less than half an interval is a seam.
  func gap(before next: SegmentSummary) -> SessionManifest.Gap? {
    let distance = next.startMs - endMs
    let isSeam = batchDigest != next.batchDigest && 2 * distance < intervalMs
    return distance > 0 && !isSeam ? SessionManifest.Gap(startMs: endMs, endMs: next.startMs) : nil
  }
}
