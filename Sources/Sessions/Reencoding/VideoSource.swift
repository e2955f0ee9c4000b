// Sources for re-encoding: finished video, its instants, and its pictures. A source falls into pieces that can be worked
// on side by side.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// One segment that is to be made.
struct SegmentOrder {
  /// A picture on screen.
  struct PlacedHold {
    package let shot: FrameHold
    /// Where the picture is in its source, in the track's units.
    let pts: Int64
    /// Where it is coded and coded again, in ticks from the shot's start; nil for what players need.
    let sampleStarts: [Int64]?
  }

  /// In order; all of one size.
  let showings: [PlacedHold]
  /// How many quarter turns clockwise the pictures are to be shown.
  let quarterTurns: Int
  /// Pictures of the source that are not shown, listed with this segment.
  package let refused: [RefusedFrame]
  /// The segment's manifest, but for what ``Reencoding`` says of how it was encoded.
  package let manifest: (StagedSegment) -> JSONValue

  package var startMs: Int64 { showings[0].shot.startMs }
}

protocol VideoSource: Sendable {
  var session: SessionID { get }
  /// The starts of the segments that each piece becomes, in order.
  var pieces: [[Int64]] { get }

  /// The identity of the source in a manifest.
  ///
  /// - Returns: nil where the source has no such segment.
  func identity(of startMs: Int64) throws -> String?

  /// Opens a piece: all that is to be made of it, and its pictures from the first one on.
  ///
  /// - Parameter isCancelled: asked while it is read.
  func open<R>(
    _ piece: Int, isCancelled: @escaping () -> Bool, _ body: ([SegmentOrder], any FilmPictures) throws -> R
  ) throws -> R
}

/// A published session: each segment is a piece.
struct SessionSource: VideoSource {
  private let directory: SessionDirectory
  private let starts: Set<Int64>
  package let pieces: [[Int64]]

  package var session: SessionID { directory.session }

  init(_ directory: SessionDirectory) throws {
    self.directory = directory
    let starts = try directory.soundSegments().map(\.startMs)
    self.starts = Set(starts)
    pieces = starts.map { [$0] }
  }

  package func identity(of startMs: Int64) throws -> String? {
    starts.contains(startMs) ? try directory.soundManifest(startMs).json.object?["manifestSha256"]?.string : nil
  }

  package func open<R>(
    _ piece: Int, isCancelled: @escaping () -> Bool, _ body: ([SegmentOrder], any FilmPictures) throws -> R
  ) throws -> R {
    let (segment, json) = try directory.soundManifest(pieces[piece][0])
    let bytes = try directory.video(of: segment)
    let starts = try SegmentSamples(of: segment, bytes: bytes, reader: directory.reader).video.reduce(into: [0]) {
      $0.append($0.last! + $1.duration)
    }
    let order = SegmentOrder(
      showings: try showings(segment, json, sampleStarts: starts.dropLast()), quarterTurns: 0, refused: [],
      manifest: { staged in
        json.setting([
          "width": .number(staged.shots[0].capture.width), "height": .number(staged.shots[0].capture.height),
          "codedWidth": .number(staged.codedWidth), "codedHeight": .number(staged.codedHeight),
          "codec": .string(staged.codec), "bytes": .number(staged.size), "sha256": .string(staged.sha256),
          "samples": .number(staged.samples),
        ])
      })
    return try bytes.withUnsafeBytes { buffer in
      try directory.reader.withFilm(
        in: MemoryBytes(buffer), name: segment.file, track: 0, keyDTS: nil, limits: Limits(), isCancelled: isCancelled
      ) { try body([order], $0) }
    }
  }

  /// The frames as the manifest lists them, coded where they are coded there.
  private func showings(
    _ segment: PublishedSegment, _ json: JSONValue, sampleStarts: [Int64]
  ) throws -> [SegmentOrder.PlacedHold] {
    var startMs = segment.startMs
    let sources = (json.object?["frames"]?.array ?? []).map { $0.object?["source"]?.string ?? "" }
    return try zip(segment.frames, sources).map { frame, source in
      defer { startMs += frame.holdMs }
      let from = MediaTime.ticks(ms: startMs - segment.startMs)
      let own = sampleStarts.filter { (from..<from + MediaTime.ticks(ms: frame.holdMs)).contains($0) }
      guard own.first == from else { throw BadSession(segment.file, "a frame has no sample at its instant") }
      let capture = Capture(source: source, timeMs: frame.timeMs, width: segment.width, height: segment.height)
      let shot = FrameHold(
        capture: capture, status: frame.isCaptured ? .captured : .continued, startMs: startMs, holdMs: frame.holdMs,
        opensSegment: startMs == segment.startMs, closingGapMs: nil)
      return SegmentOrder.PlacedHold(shot: shot, pts: from, sampleStarts: own.map { $0 - from })
    }
  }
}
