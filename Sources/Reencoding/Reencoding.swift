// Encodes a session or a film again: the same times, holds, gaps and timing track, other pixels. Each segment is published as soon
// as it is encoded, so a second run continues a stopped one. The result is the same.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions

/// The result of re-encoding.
package struct ReencodedSession: Sendable, Equatable {
  package let session: SessionID
  package let durationMs: Int64
  /// The number of all segments, and of those encoded now.
  package let segments: Int
  package let encoded: Int
  package let bytes: Int
  /// Parts of the overlay that pictures have no room for.
  package let warnings: [String]

  /// One line of JSON.
  package var json: String {
    JSONValue.object([
      "session": .string(session.description), "durationMs": .number(durationMs), "segments": .number(segments),
      "encoded": .number(encoded), "bytes": .number(bytes), "warnings": .array(warnings.map { .string($0) }),
    ]).line
  }
}

package final class Reencoding: Sendable {
  package struct Options: Sendable {
    /// nil for the one that all segments of the source state, or else balanced.
    package var quality: Quality?
    /// Whether to make an archive of a session, instead of segments of that quality.
    package var isArchive = false
    /// The maximum side of a picture, in pixels; nil to keep its size.
    package var maxSide: Int?
    /// The texts to draw into the pictures; nil for none.
    package var overlay: Overlay?
    /// The name of the session; nil for that of the source, or for that of an MP4's file.
    package var session: SessionID?
    /// Unix milliseconds of the first picture of an MP4; nil to read them from its name or the file.
    package var startMs: Int64?
    /// The start of an MP4 that does not tell its own; nil to refuse it.
    package var assumedStartMs: Int64?
    package var limits = Limits.ofFilms
    /// The processes that decode videos; nil to decode trusted videos in this process.
    package var decoders: DecoderForkServer?

    package init() {}
  }

  /// The pieces that are not published yet. They may be encoded in parallel.
  package let pieces: [Int]
  /// The number of their segments.
  package let owed: Int
  private let path: String
  private let source: any VideoSource
  private let session: SessionID
  private let directory: SessionDirectory
  private let publication: DirectoryStore
  private let options: Options
  private let settings: EncoderSettings
  /// Those that are drawn, in the order of their starts.
  private let captions: [Caption]
  /// The starts of the source's segments, and of those that were published before.
  private let starts: Set<Int64>
  private let made: Set<Int64>

  /// Whether its times count from ``Options/assumedStartMs``.
  package var isWithoutClock: Bool { options.assumedStartMs != nil && starts.min() == options.assumedStartMs }

  /// Whether a source is a session's directory; else it is an MP4.
  package static func isSession(_ path: String) -> Bool { DurableFile.isReachableDirectory(path) }

  /// - Parameters:
  ///   - path: a published session, or an MP4 with an H.264 or HEVC track.
  ///   - staging: returns the output; called when the source has been checked.
  ///   - cancellation: called while a film is read.
  /// - Throws: ``BadSession`` when the source cannot be used, or another one has been published under its name.
  package init(
    _ path: String, _ options: Options, staging: () throws -> Staging, cancellation: Cancellation
  ) throws {
    source = try Self.source(path, options, cancellation)
    if options.overlay != nil { try Self.requireNoOverlay(in: source, path) }
    session = options.session ?? source.session
    captions = try options.overlay?.parts.contains(.caption) ?? false ? Self.captions(of: path) : []
    self.path = path
    self.options = options
    settings =
      options.isArchive ? .archive : EncoderSettings(reencodingTo: options.quality ?? source.quality ?? .balanced)
    let staging = try staging()
    publication = DirectoryStore(staging: staging, index: SessionViews())
    directory = SessionDirectory(output: staging.output, session: session)
    if let deleted = try publication.tombstone(of: session) { throw SessionDeleted(deleted) }
    let published = try directory.publishedStarts()
    let (all, made) = (source.pieces, Set(published))
    self.made = made
    starts = Set(all.joined())
    pieces = all.indices.filter { !made.isSuperset(of: all[$0]) }
    owed = starts.subtracting(made).count
    for start in published {
      let (segment, json) = try directory.soundManifest(start)
      try requireSame(json, at: start)
      let file = directory.path + "/" + segment.file
      guard DurableFile.isFile(file), try DurableFile.size(of: file) == segment.bytes else {
        throw BadSession(file, "not the file its manifest describes")
      }
    }
  }

  private static func source(
    _ path: String, _ options: Options, _ cancellation: Cancellation
  ) throws -> any VideoSource {
    let advice = "name a directory OUTPUT/SESSION, or an MP4"
    if !DurableFile.exists(path), let existing = SessionAdvice.existing(insteadOf: path) {
      throw BadSession(path, "no such file or directory", advice: "\(existing), or an MP4")
    }
    if isSession(path) {
      if FinishedSegmentsFormat.mayBe(path), !SessionDirectory.isSession(path),
        let videos = VideoFormat.adviceOnFolder(path)
      {
        throw BadSession(path, "no session, but videos", advice: videos)
      }
      let directory = try SessionDirectory(at: path, decoders: options.decoders)
      return try options.isArchive ? ArchiveSource(directory) : SessionSource(directory)
    }
    guard !options.isArchive else {
      throw BadSession(
        path, "no session: an archive is made of published segments",
        advice: "run reencode with --quality balanced first, then make an archive of the session")
    }
    do {
      return try FilmSource(path, options, cancellation: cancellation)
    } catch let failure as FFmpegError {
      // This includes a lack of memory: a damaged file can ask for any amount.
      if let video = VideoFormat.ofFile(at: path), !video.isReadable {
        throw BadSession(path, "\(video.described), not an MP4", advice: video.advice(for: path))
      }
      throw BadSession(path, failure.cause, advice: advice)
    } catch let failure as DiskError where [ENOENT, ENOTDIR, EACCES, ELOOP, ENXIO].contains(failure.code) {
      throw BadSession(path, "\(failure)", advice: advice)
    }
  }

  /// Returns the captions of a session, as its film shows them; none of an MP4.
  private static func captions(of path: String) throws -> [Caption] {
    guard isSession(path) else { return [] }
    let directory = try SessionDirectory(at: path)
    let manifests = try directory.publishedStarts().map(directory.soundManifest)
    guard let first = manifests.first?.segment, let last = manifests.last?.segment else { return [] }
    var marks = SessionMarks()
    for (segment, json) in manifests { marks.add(json, of: segment) }
    return Caption.all(marks.labels, in: first.startMs..<max(first.startMs + 1, last.endMs), isWhole: true)
  }

  /// - Throws: ``BadSession`` when pictures have an overlay, over which another one would be drawn.
  private static func requireNoOverlay(in source: any VideoSource, _ path: String) throws {
    guard source.pieces.joined().contains(where: { source.overlay(of: $0) != nil }) else { return }
    throw BadSession(
      path, "its pictures have an overlay already",
      advice: "name the session that it was made from, or leave --overlay out")
  }

  /// - Throws: ``BadSession`` when a published manifest has other settings, or another source.
  private func requireSame(_ manifest: JSONValue, at start: Int64) throws {
    let description = try description(of: manifest, at: start)
    guard manifest.setting(description) == manifest else {
      let isOther = description["reencodedFrom"] != manifest.object?["reencodedFrom"]
      throw BadSession(
        directory.path + "/" + SegmentName.manifest(start),
        "published there already, with other settings or from another source",
        advice: isOther && !Self.isSession(path) ? try adviceOnParts() : adviceOnSettings(manifest))
    }
  }

  /// Without `--quality` it is that of the source, which has changed if segments of another quality have come.
  private func adviceOnSettings(_ manifest: JSONValue) -> String {
    let other = "name another output directory"
    guard options.quality == nil,
      let there = manifest.object?["encoder"]?.object?["quality"]?.string.flatMap(Quality.init(rawValue:)),
      settings.json.object?["quality"]?.string != there.rawValue
    else { return other }
    return "give --quality \(there.rawValue), which the segments there have, or \(other)"
  }

  /// Returns the remedy for an MP4 where another one has been published: it may be the next part of a recording.
  private func adviceOnParts() throws -> String {
    let other = "name another session with --session, or another output directory"
    let bytes = try? DurableFile.contents(of: path, limit: SegmentManifest.maximumVideoBytes)
    let reader = VideoReader(options.decoders, owner: path)
    guard let first = starts.min(), let bytes,
      (try? FinishedVideo(
        reading: bytes, name: lastComponent(of: path), reader, limits: options.limits, cancellation: .never)) != nil
    else { return "\(other); to make one session of several MP4s, join them to one MP4 first" }
    return "\(other); to make one session of several MP4s, put them into a directory, "
      + "each named <unix ms of its first picture>.mp4 (this one \(first).mp4), "
      + "and run: encoder-worker encode DIRECTORY --session NEW --output DIR"
  }

  /// Returns the part of a manifest that describes the encoding.
  private func description(of manifest: JSONValue, at start: Int64) throws -> [String: JSONValue] {
    // The times come from the source, and with them the longest hold and the length of a segment.
    var encoder = settings.json.object ?? [:]
    for key in ["maxHoldMs", "segmentMs"] { encoder[key] = manifest.object?["encoder"]?.object?[key] }
    encoder["maxSide"] = options.maxSide.map { .number($0) }
    encoder["overlay"] =
      try options.overlay.map { try $0.json(of: manifest, in: session) } ?? source.overlay(of: start)
    let identity = starts.contains(start) ? try source.identity(of: start) : nil
    return [
      "encoder": .object(encoder), "reencodedFrom": identity.map { .string($0) } ?? .null,
      "session": .string(session.description),
    ]
  }

  /// Encodes and publishes the missing segments of a piece.
  ///
  /// - Parameters:
  ///   - cancellation: called before each picture.
  ///   - report: called after each segment.
  package func encode(piece: Int, cancellation: Cancellation, made report: () -> Void) throws {
    do {
      try source.open(piece, cancellation: cancellation) { orders, pictures in
        var shown: SourceFrame?
        for order in orders where !made.contains(order.startMs) {
          try publish(order, try encode(order, pictures, &shown, cancellation))
          report()
        }
      }
    } catch let failure as FFmpegError where !failure.isOutOfMemory {
      throw BadSession(path, "a picture cannot be decoded: \(failure.cause)", advice: "check that the file is complete")
    }
  }

  private func publish(_ order: SegmentOrder, _ segment: EncodedSegment) throws {
    let staged = try StagedSegment(segment, in: publication.staging, refused: order.refused, notes: [:])
    defer { staged.video.discard() }
    let manifest = order.manifest(staged)
    let description = try description(of: manifest, at: order.startMs)
    try directory.locked {
      if DurableFile.exists(directory.path + "/" + SegmentName.manifest(order.startMs)) {
        // Another process has published it meanwhile.
        return try requireSame(directory.soundManifest(order.startMs).json, at: order.startMs)
      }
      try publication.place([(staged, manifest.setting(description))], in: directory)
    }
  }

  private func encode(
    _ order: SegmentOrder, _ pictures: any FilmPictures, _ shown: inout SourceFrame?, _ cancellation: Cancellation
  ) throws -> EncodedSegment {
    var writer: SegmentWriter?
    let overlay = try options.overlay.map {
      try SegmentOverlay($0, in: session, of: order.original, captions: captions)
    }
    for (index, placed) in order.holds.enumerated() {
      try cancellation.check()
      let captured = try picture(of: placed, from: pictures, order.quarterTurns)
      // Equal pictures with other texts are no repeats.
      let picture = try overlay?.drawn(on: captured, of: placed.hold, index: index) ?? captured
      let capture = Capture(
        source: placed.hold.capture.source, timeMs: placed.hold.capture.timeMs, width: picture.width,
        height: picture.height)
      // Keep one frame as long as the picture stays the same: its key frame is coded once.
      let new = SourceFrame(picture)
      let frame = try shown.flatMap { try $0.looksLike(new) ? $0 : nil } ?? new
      shown = frame
      if writer == nil { writer = SegmentWriter(first: frame, settings: settings) }
      try writer?.show(frame, in: placed.hold.showing(capture), sampleStarts: placed.sampleStarts)
    }
    guard let writer = writer.take() else { throw BadSession(directory.path, "a segment without a frame") }
    return try writer.finish()
  }

  private func picture(
    of placed: SegmentOrder.PlacedHold, from pictures: any FilmPictures, _ quarterTurns: Int
  ) throws -> Picture {
    let capture = placed.hold.capture
    let size = PixelSize(width: capture.width, height: capture.height).turned(quarterTurns)
    let form = VideoPictureForm(size: size, quarterTurns: quarterTurns, maxSide: options.maxSide)
    do {
      if let picture = try pictures.picture(at: placed.pts, as: form) { return picture }
    } catch let bad as BadSession {
      throw BadSession(capture.source, bad.cause, advice: bad.advice)
    }
    throw BadSession(path, "\(capture.source) cannot be decoded", advice: "check that the file is complete")
  }

  /// Updates the session's views, also after a part of the work.
  ///
  /// - Parameter encoded: the number of segments encoded now.
  package func finish(encoded: Int) throws -> ReencodedSession {
    let (index, staging) = (publication.index, publication.staging)
    try directory.locked {
      if let end = try source.end, try !directory.publishedStarts().isEmpty {
        let own = SessionEnd(session, end.cause, endedMs: end.endedMs)
        try index.record(own, staging.temporaryFile(), in: directory)
      }
      try index.update(directory, temporary: staging.temporaryFile())
    }
    let segments = try directory.publishedStarts().map { try directory.segment($0) }
    if segments.isEmpty { rmdir(directory.path) }
    let all = SessionIndex(session: session, segments: segments)
    return ReencodedSession(
      session: session, durationMs: all?.durationMs ?? 0, segments: segments.count, encoded: encoded,
      bytes: all?.bytes ?? 0, warnings: options.overlay?.omissions(in: segments) ?? [])
  }
}

extension FrameHold {
  /// The same hold of a picture of another size.
  fileprivate func showing(_ capture: Capture) -> FrameHold {
    FrameHold(
      capture: capture, status: status, startMs: startMs, holdMs: holdMs, opensSegment: opensSegment,
      closingGapMs: closingGapMs)
  }
}
