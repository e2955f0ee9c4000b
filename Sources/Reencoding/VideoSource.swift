// Sources for re-encoding: the times and pictures of finished video, in pieces that can be encoded in parallel.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON
import Sessions

/// One segment to encode.
struct SegmentOrder {
  /// A picture on screen.
  struct PlacedHold {
    let hold: FrameHold
    /// The time of the picture in its source, in the track's units.
    let pts: Int64
    /// The starts of its samples, in ticks from the hold's start; nil for as many as players need.
    let sampleStarts: [Int64]?
  }

  /// In order; all of one size.
  let holds: [PlacedHold]
  /// The clockwise rotation of the pictures.
  let quarterTurns: Int
  /// Pictures of the source that are not shown, listed with this segment.
  let refused: [RefusedFrame]
  /// The segment that is encoded again, and its manifest; nil for a part of a film.
  let original: (segment: PublishedSegment, manifest: JSONValue)?
  /// The segment's manifest without the members that ``Reencoding`` sets.
  let manifest: (StagedSegment) -> JSONValue

  var startMs: Int64 { holds[0].hold.startMs }
}

extension PixelSize {
  func turned(_ quarterTurns: Int) -> PixelSize {
    quarterTurns % 2 == 0 ? self : PixelSize(width: height, height: width)
  }
}

protocol VideoSource: Sendable {
  var session: SessionID { get }
  /// The starts of the segments of each piece, in order.
  var pieces: [[Int64]] { get }
  /// The recorded end of the session; nil if there is none.
  var end: SessionEnd? { get throws }
  /// The quality of all its segments; nil if they have several, or none that this program knows.
  var quality: Quality? { get }

  /// Returns the identity of the source in the manifest of one of its segments.
  func identity(of startMs: Int64) throws -> String?

  /// Returns the overlay in the pictures of one of its segments, as in the manifest; nil if the source tells of none.
  func overlay(of startMs: Int64) -> JSONValue?

  /// Opens a piece: its segments, and its pictures from the first one on.
  ///
  /// - Parameter cancellation: called while the piece is read.
  func open(
    _ piece: Int, cancellation: Cancellation, _ body: ([SegmentOrder], any FilmPictures) throws -> Void
  ) throws
}

/// A published session: each segment is a piece.
struct SessionSource: VideoSource {
  private let directory: SessionDirectory
  let pieces: [[Int64]]
  let quality: Quality?
  /// The overlays of segments, by their starts.
  private let overlays: [Int64: JSONValue]

  var session: SessionID { directory.session }
  var end: SessionEnd? { get throws { try directory.recordedEnd() } }

  init(_ directory: SessionDirectory) throws {
    self.directory = directory
    let segments = try directory.soundSegments()
    pieces = segments.map { [$0.startMs] }
    let qualities = Set(segments.map { $0.encoder.object?["quality"]?.string })
    quality = qualities.count == 1 ? qualities.first.flatMap { $0 }.flatMap { Quality(rawValue: $0) } : nil
    overlays = segments.reduce(into: [:]) { $0[$1.startMs] = $1.overlay }
  }

  func overlay(of startMs: Int64) -> JSONValue? { overlays[startMs] }

  func identity(of startMs: Int64) throws -> String? {
    try directory.soundManifest(startMs).json.object?["manifestSha256"]?.string
  }

  func open(
    _ piece: Int, cancellation: Cancellation, _ body: ([SegmentOrder], any FilmPictures) throws -> Void
  ) throws {
    let (segment, json) = try directory.soundManifest(pieces[piece][0])
    try Self.require(segment, within: directory.reader.decoders?.limits)
    let bytes = try directory.video(of: segment)
    let tracks = try SegmentTracks(of: segment, bytes: bytes, reader: directory.reader)
    let starts = tracks.video.reduce(into: [0]) { $0.append($0.last! + $1.duration) }
    let order = SegmentOrder(
      holds: try holds(segment, json, sampleStarts: starts.dropLast(), areKept: !tracks.isAV1),
      quarterTurns: 0, refused: [], original: (segment, json),
      manifest: { Self.manifest(json, of: segment, for: $0) })
    try bytes.withUnsafeBytes { buffer in
      try directory.reader.withFilm(
        in: MemoryBytes(buffer), name: segment.file, track: 0, keyDTS: nil, limits: .published,
        cancellation: cancellation
      ) { try body([order], $0) }
    }
  }

  /// - Throws: ``BadSession`` for pictures that decoders refuse.
  static func require(_ segment: PublishedSegment, within limits: Limits?) throws(BadSession) {
    let coded = PixelSize(width: segment.codedWidth, height: segment.codedHeight)
    guard let limits, !coded.isWithin(limits) else { return }
    throw BadSession(
      segment.file,
      "pictures of \(coded.width)×\(coded.height) pixels, more than the limit of \(limits.pixels) in all",
      advice: "encode its batch again with another --quality, or use --sandbox off for a trusted session")
  }

  /// Returns a manifest with the facts of a new video.
  ///
  /// - Parameter segment: with the size of the pictures that the manifest tells of.
  static func manifest(_ json: JSONValue, of segment: PublishedSegment, for staged: StagedSegment) -> JSONValue {
    let size = (staged.holds[0].capture.width, staged.holds[0].capture.height)
    let source =
      size == (segment.width, segment.height)
      ? json : resized(json, from: segment.size, to: PixelSize(width: size.0, height: size.1))
    return source.setting([
      "width": .number(staged.holds[0].capture.width), "height": .number(staged.holds[0].capture.height),
      "codedWidth": .number(staged.codedWidth), "codedHeight": .number(staged.codedHeight),
      "codec": .string(staged.codec), "bytes": .number(staged.size), "sha256": .string(staged.sha256),
      "samples": .number(staged.samples),
    ])
  }

  /// Returns a manifest for pictures of another size: with other blocks, of which continued frames change none, and other masks.
  private static func resized(_ manifest: JSONValue, from size: PixelSize, to other: PixelSize) -> JSONValue {
    let frames = (manifest.object?["frames"]?.array ?? []).map { frame -> JSONValue in
      guard var members = frame.object else { return frame }
      if members[ChangedBlocks.key]?.integer != 0 { members[ChangedBlocks.key] = nil }
      let masks = PaintedMasks.read(members, of: size).map { $0.scaled(from: size, to: other) }
      members[PaintedMasks.key] = masks.isEmpty ? nil : PaintedMasks.json(masks)
      return .object(members)
    }
    return manifest.setting(["frames": .array(frames)])
  }

  /// Returns the frames of the manifest with their existing sample starts.
  ///
  /// - Parameter areKept: false for as many samples as players need: AV1 of earlier versions has no repeats.
  private func holds(
    _ segment: PublishedSegment, _ json: JSONValue, sampleStarts: [Int64], areKept: Bool
  ) throws -> [SegmentOrder.PlacedHold] {
    var startMs = segment.startMs
    let sources = (json.object?["frames"]?.array ?? []).map { $0.object?["source"]?.string ?? "" }
    return try zip(segment.frames, sources).map { frame, source in
      defer { startMs += frame.holdMs }
      let from = MediaTime.ticks(ms: startMs - segment.startMs)
      let own = sampleStarts.filter { (from..<from + MediaTime.ticks(ms: frame.holdMs)).contains($0) }
      guard own.first == from else { throw BadSession(segment.file, "a frame has no sample at its instant") }
      let capture = Capture(source: source, timeMs: frame.timeMs, width: segment.width, height: segment.height)
      let hold = FrameHold(
        capture: capture, status: frame.isCaptured ? .captured : .continued, startMs: startMs, holdMs: frame.holdMs,
        opensSegment: startMs == segment.startMs, closingGapMs: nil)
      return SegmentOrder.PlacedHold(hold: hold, pts: from, sampleStarts: areKept ? own.map { $0 - from } : nil)
    }
  }
}
