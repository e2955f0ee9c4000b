// The session so far: a view of its segments' manifests that can always be rebuilt from them. Pure.

public struct SessionManifest: Sendable, Equatable {
  public struct Segment: Sendable, Equatable {
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

  public struct Gap: Sendable, Equatable {
    public let startMs: Int64
    public let endMs: Int64
  }

  public let session: SessionID
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
  init?(session: SessionID, segments: [PublishedSegment]) {
    guard let first = segments.first, let last = segments.last else { return nil }
    self.session = session
    startMs = first.startMs
    endMs = last.endMs + last.gapAfterMs
    durationMs = endMs - startMs
    complete = last.isFinal
    self.segments = segments.map {
      Segment(
        file: $0.file, startMs: $0.startMs, durationMs: $0.durationMs, width: $0.width, height: $0.height,
        bytes: $0.bytes, sha256: $0.sha256, frames: $0.frames.count)
    }
    var gaps = zip(segments, segments.dropFirst()).compactMap { $0.gap(before: $1) }
    if last.gapAfterMs > 0 { gaps.append(Gap(startMs: last.endMs, endMs: endMs)) }
    self.gaps = gaps
    frames = segments.reduce(0) { $0 + $1.frames.count { $0.isCaptured } }
    bytes = segments.reduce(0) { $0 + $1.bytes }
  }

  /// Both forms of it, by file name.
  var files: [(name: String, bytes: [UInt8])] {
    [
      ("session.json", json.bytes() + [UInt8(ascii: "\n")]), ("session.ffconcat", Array(concatScript.utf8)),
    ]
  }

  var json: JSONValue {
    .object([
      "format": .string("session-manifest/1"), "session": .string(session.description), "startMs": .number(startMs),
      "endMs": .number(endMs), "durationMs": .number(durationMs), "complete": .bool(complete),
      "segments": .array(
        segments.map {
          .object([
            "file": .string($0.file), "startMs": .number($0.startMs), "durationMs": .number($0.durationMs),
            "width": .number($0.width), "height": .number($0.height), "bytes": .number($0.bytes),
            "sha256": .string($0.sha256), "frames": .number($0.frames),
          ])
        }),
      "gaps": .array(gaps.map { .object(["startMs": .number($0.startMs), "endMs": .number($0.endMs)]) }),
      "frames": .number(frames), "bytes": .number(bytes),
    ])
  }

  /// For stock ffmpeg: each file lasts until the next one starts, so that seams close and gaps are held. Where the next
  /// one starts early, `outpoint` leaves out what would lie behind its start.
  var concatScript: String {
    var text = "ffconcat version 1.0\n"
    for (index, segment) in segments.enumerated() {
      let next = index + 1 < segments.count ? segments[index + 1].startMs : segment.startMs + segment.durationMs
      let length = next - segment.startMs
      text += "file \(segment.file)\n"
      if length < segment.durationMs { text += "outpoint \(length.secondsText)\n" }
      text += "duration \(length.secondsText)\n"
    }
    return text
  }
}

extension PublishedSegment {
  /// The unrecorded time up to the next segment. Within a batch any distance is one. Batches meet with some jitter, and
  /// less than half an interval from the end of the one, gap included, to the beginning of the other is a seam.
  func gap(before next: PublishedSegment) -> SessionManifest.Gap? {
    let distance = next.startMs - endMs
    let isSeam = batchDigest != next.batchDigest && 2 * (distance - gapAfterMs) < intervalMs
    return distance > 0 && (gapAfterMs > 0 || !isSeam) ? SessionManifest.Gap(startMs: endMs, endMs: next.startMs) : nil
  }
}
