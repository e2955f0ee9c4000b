// Finished video, encoded anew: the same instants, holds, gaps and timing track, other pixels. Each segment is published
// as soon as it is made, so what was stopped goes on where it was; what comes out does not depend on that.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

/// The result of re-encoding.
package struct ReencodedSession: Sendable, Equatable {
  package let session: SessionID
  package let durationMs: Int64
  /// All there are, and those that were made now.
  package let segments: Int
  package let encoded: Int
  package let bytes: Int

  /// One line of JSON.
  package var json: String {
    JSONValue.object([
      "session": .string(session.description), "durationMs": .number(durationMs), "segments": .number(segments),
      "encoded": .number(encoded), "bytes": .number(bytes),
    ]).line
  }
}

package final class Reencoding: Sendable {
  package struct Options: Sendable {
    package var quality = Quality.balanced
    /// No side of a picture is longer, in pixels; nil for the size it has.
    package var maxSide: Int?
    /// Of an MP4: the session, and when its first picture was captured in unix milliseconds. nil: what its name or itself
    /// says.
    package var session: SessionID?
    package var startMs: Int64?
    package var limits = Limits()
    /// Where videos are decoded; nil for right here, for those that can be trusted.
    package var decoders: DecoderForkServer?

    package init() {}
  }

  /// The pieces that are still to be made; they may be made side by side.
  package let pieces: [Int]
  /// How many segments they are.
  package let owed: Int
  private let path: String
  private let source: any VideoSource
  private let directory: SessionDirectory
  private let publication: DirectoryStore
  private let options: Options
  private let settings: EncoderSettings
  /// The starts of what is made already.
  private let made: Set<Int64>

  /// Whether a source is a directory, and not an MP4.
  package static func isSession(_ path: String) -> Bool { DurableFile.isReachableDirectory(path) }

  /// - Parameters:
  ///   - path: a published session, or an MP4 with an H.264 or HEVC track.
  ///   - staging: says where sessions go; asked for once the source is known to be good.
  ///   - isCancelled: asked while a film is read.
  /// - Throws: ``BadSession`` when the source cannot be used, or something else has been published under its name.
  package init(
    _ path: String, _ options: Options, staging: () throws -> Staging, isCancelled: @escaping () -> Bool
  ) throws {
    source = try Self.source(path, options, isCancelled)
    self.path = path
    self.options = options
    settings = EncoderSettings(options.quality)
    let staging = try staging()
    publication = DirectoryStore(staging: staging, index: SessionViews())
    directory = SessionDirectory(output: staging.output, session: source.session)
    var made: Set<Int64> = []
    for start in try directory.publishedStarts() {
      let (segment, json) = try directory.soundManifest(start)
      try Self.requireSame(json, at: start, source, settings, options, directory)
      let file = directory.path + "/" + segment.file
      guard DurableFile.isFile(file), try DurableFile.size(of: file) == segment.bytes else {
        throw BadSession(file, "not the file its manifest describes")
      }
      made.insert(start)
    }
    self.made = made
    let all = source.pieces
    pieces = all.indices.filter { !made.isSuperset(of: all[$0]) }
    owed = all.reduce(0) { $0 + $1.count { !made.contains($0) } }
  }

  private static func source(
    _ path: String, _ options: Options, _ isCancelled: @escaping () -> Bool
  ) throws -> any VideoSource {
    let advice = "name a directory OUTPUT/SESSION, or an MP4"
    if isSession(path) {
      return try SessionSource(SessionDirectory(at: path, decoders: options.decoders))
    }
    do {
      return try FilmSource(
        path, session: options.session, startMs: options.startMs, limits: options.limits,
        decoders: options.decoders, isCancelled: isCancelled)
    } catch let failure as FFmpegError {
      // Lack of memory, too: a file can ask for more than there is.
      throw BadSession(path, failure.cause, advice: advice)
    } catch let failure as DiskError where [ENOENT, ENOTDIR, EACCES, ELOOP, ENXIO].contains(failure.code) {
      throw BadSession(path, "\(failure)", advice: advice)
    }
  }

  /// - Throws: ``BadSession`` when what is published there is not what would be made now.
  private static func requireSame(
    _ there: JSONValue, at start: Int64, _ source: any VideoSource, _ settings: EncoderSettings, _ options: Options,
    _ directory: SessionDirectory
  ) throws {
    let description = try description(of: there, source.identity(of: start), settings, options)
    guard there.setting(description) == there else {
      throw BadSession(
        directory.path + "/" + SegmentName.manifest(start),
        "published there already, with other settings or from another source",
        advice: "name another output directory")
    }
  }

  /// The part of a manifest that says how its segment was encoded.
  private static func description(
    of manifest: JSONValue, _ identity: String?, _ settings: EncoderSettings, _ options: Options
  ) -> [String: JSONValue] {
    // The longest hold decided the instants, which are those of the source.
    var encoder = settings.json.object ?? [:]
    encoder["maxHoldMs"] = manifest.object?["encoder"]?.object?["maxHoldMs"]
    encoder["maxSide"] = options.maxSide.map { .number($0) }
    return ["encoder": .object(encoder), "reencodedFrom": identity.map { .string($0) } ?? .null]
  }

  /// Makes and publishes what is missing of a piece.
  ///
  /// - Parameters:
  ///   - isCancelled: asked before each picture.
  ///   - report: called after each segment.
  package func encode(piece: Int, isCancelled: @escaping () -> Bool, made report: () -> Void) throws {
    do {
      try source.open(piece, isCancelled: isCancelled) { orders, pictures in
        var shown: SourceFrame?
        for order in orders where !made.contains(order.startMs) {
          try publish(order, try encode(order, pictures, &shown, isCancelled))
          report()
        }
      }
    } catch let failure as FFmpegError where !failure.isOutOfMemory {
      throw BadSession(path, "a picture cannot be decoded: \(failure.cause)", advice: "check that the file is complete")
    }
  }

  private func publish(_ order: SegmentOrder, _ segment: EncodedSegment) throws {
    let staged = try StagedSegment(segment, in: publication.staging, refused: order.refused, notes: [:])
    defer { unlink(staged.file) }
    let manifest = order.manifest(staged)
    let description = try Self.description(of: manifest, source.identity(of: order.startMs), settings, options)
    try directory.locked {
      if DurableFile.exists(directory.path + "/" + SegmentName.manifest(order.startMs)) {
        // By a process that does the same work at the same time, or other work.
        let there = try directory.soundManifest(order.startMs).json
        return try Self.requireSame(there, at: order.startMs, source, settings, options, directory)
      }
      try publication.place([(staged, manifest.setting(description))], in: directory)
    }
  }

  private func encode(
    _ order: SegmentOrder, _ pictures: any FilmPictures, _ shown: inout SourceFrame?, _ isCancelled: () -> Bool
  ) throws -> EncodedSegment {
    var writer: SegmentWriter?
    for showing in order.showings {
      if isCancelled() { throw Cancelled() }
      let picture = try picture(of: showing, from: pictures, order.quarterTurns)
      let capture = Capture(
        source: showing.shot.capture.source, timeMs: showing.shot.capture.timeMs, width: picture.width,
        height: picture.height)
      // One picture as long as it stays the same, so that its key frame is coded once.
      let new = SourceFrame(picture)
      let still = try shown.flatMap { try $0.looksLike(new) ? $0 : nil } ?? new
      shown = still
      if writer == nil { writer = SegmentWriter(first: still, settings: settings) }
      try writer?.show(still, in: showing.shot.showing(capture), sampleStarts: showing.sampleStarts)
    }
    guard let writer = writer.take() else { throw BadSession(directory.path, "a segment without a frame") }
    return try writer.finish()
  }

  private func picture(
    of showing: SegmentOrder.PlacedHold, from pictures: any FilmPictures, _ quarterTurns: Int
  ) throws -> Picture {
    let capture = showing.shot.capture
    let isUpright = quarterTurns % 2 == 0
    let form = VideoPictureForm(
      size: PixelSize(
        width: isUpright ? capture.width : capture.height, height: isUpright ? capture.height : capture.width),
      quarterTurns: quarterTurns, maxSide: options.maxSide)
    do {
      if let picture = try pictures.picture(at: showing.pts, as: form) { return picture }
    } catch let bad as BadSession {
      throw BadSession(capture.source, bad.cause, advice: bad.advice)
    }
    throw BadSession(path, "\(capture.source) cannot be decoded", advice: "check that the file is complete")
  }

  /// Brings the session's index up to date, also when not all is made.
  ///
  /// - Parameter encoded: how many segments were made now.
  package func finish(encoded: Int) throws -> ReencodedSession {
    try directory.locked { try publication.index.update(directory, temporary: publication.staging.temporaryFile()) }
    let segments = try directory.publishedStarts().map { try directory.segment($0) }
    if segments.isEmpty { rmdir(directory.path) }
    let session = SessionIndex(session: source.session, segments: segments)
    return ReencodedSession(
      session: source.session, durationMs: session?.durationMs ?? 0, segments: segments.count, encoded: encoded,
      bytes: session?.bytes ?? 0)
  }
}

extension FrameHold {
  /// The same, of a picture of another size.
  fileprivate func showing(_ capture: Capture) -> FrameHold {
    FrameHold(
      capture: capture, status: status, startMs: startMs, holdMs: holdMs, opensSegment: opensSegment,
      closingGapMs: closingGapMs)
  }
}
