// A published session as one film, or as HLS, without re-encoding.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions

/// The result of stitching.
public struct StitchedSession: Sendable, Equatable {
  /// The path of the film, or of the playlist.
  public let file: String
  /// The session's name.
  public let session: String
  /// The duration of the film or playlist, in milliseconds.
  public let durationMs: Int64
  /// The number of segments.
  public let segments: Int
  /// The size of all files of the result, in bytes.
  public let bytes: Int
  /// The part of the session that is shown, in unix milliseconds.
  package let shown: Range<Int64>
  package var speed = FilmSpeed.normal
  /// The instants that it shows.
  package let map: FilmMap
  /// The map with names; nil for a poster.
  package var namedMap: NamedMap?
  /// The labels that it shows as captions.
  var captions = FilmCaptions()
  /// The number of pictures of an animated picture or a poster.
  package var pictures: Int?
  /// The number of captured pictures that an animated picture shows as the one before, because they look like it.
  package var merged = 0
  /// The size of these pictures.
  package var size: PixelSize?
  /// The instant that counts as 0, for pictures without a clock; nil if instants are unix milliseconds.
  package var zeroMs: Int64?
  /// The sizes of the pictures of an MP4.
  var sizes: Set<PixelSize> = []
  /// The number of gaps in the part of the session.
  var gaps = 0
  /// The duration with `--idle cut`, in milliseconds; nil if nobody asks, or the film has no idle time.
  var cutMs: Int64?
  /// Missing parts of the session.
  package var warnings: [Problem]

  /// Returns when the film shows an instant, in ticks of 1/90 000 s from its start.
  ///
  /// - Parameter unixMs: unix milliseconds.
  /// - Returns: for an instant that the film leaves out, where it would be; nil outside of the part of the session.
  public func film(ofUnix unixMs: Int64) -> Int64? { map.film(ofUnix: unixMs) }

  /// Returns the instant that the film shows, in unix milliseconds: the latest one that has begun.
  ///
  /// - Parameter ticks: of 1/90 000 s, from the film's start.
  /// - Returns: nil before or behind the film.
  public func unix(ofFilm ticks: Int64) -> Int64? { map.unix(ofFilm: ticks) }

  /// The captions as WebVTT, in film time.
  package var webVTT: [UInt8] { captions.webVTT(map) }

  /// One line of JSON.
  public var json: String {
    var members: [String: JSONValue] = [
      "file": .string(file), "session": .string(session), "durationMs": .number(durationMs),
      "segments": .number(segments), "bytes": .number(bytes), "fromMs": .number(shown.lowerBound - (zeroMs ?? 0)),
      "toMs": .number(shown.upperBound - (zeroMs ?? 0)), "speed": .number(speed.description),
      "warnings": .array(warnings.map(\.json)),
    ]
    if zeroMs != nil { members["clock"] = .string("unknown") }
    members["pictures"] = pictures.map { .number($0) }
    members["map"] = namedMap?.json
    if merged > 0 { members["merged"] = .number(merged) }
    members["idleCutMs"] = cutMs.map { .number($0) }
    members["width"] = size.map { .number($0.width) }
    members["height"] = size.map { .number($0.height) }
    return JSONValue.object(members).line
  }
}

/// Makes one film, or HLS, of a session, without encoding it again.
public enum Stitching {
  /// Writes a session's film. A file at `target` is replaced atomically.
  ///
  /// - Parameters:
  ///   - path: a published session, `OUTPUT/SESSION`.
  ///   - target: the MP4 to write.
  ///   - gaps: what is shown for time that was not recorded.
  ///   - decoders: the processes that read segments; nil to read trusted segments in this process.
  ///   - progress: called with the number of segments done and of all; an error that it throws ends the work.
  /// - Returns: the facts of the film.
  /// - Throws: `BadSession` when the segments differ from their manifests, `DiskError`.
  public static func film(
    of path: String, to target: String, gaps: GapRule = .hold, decoders: DecoderForkServer? = nil,
    progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> StitchedSession {
    try film(of: path, showing: .whole, to: target, gaps: gaps, decoders: decoders, progress: progress)
  }

  /// Writes a film of a part of a session. Only segments of this part are read.
  ///
  /// - Parameters:
  ///   - form: an MP4, an animated picture or a poster.
  ///   - zeroMs: the instant that counts as 0, for pictures without a clock.
  ///   - progress: called with the number of segments or pictures done and of all.
  /// - Throws: ``BadClip`` if it shows nothing; errors of ``film(of:to:gaps:decoders:progress:)``.
  package static func film(
    of path: String, showing clip: Clip, as form: FilmForm = .mp4, to target: String, gaps: GapRule,
    zeroMs: Int64? = nil, decoders: DecoderForkServer?, progress: (Int, Int) throws -> Void
  ) throws -> StitchedSession {
    let directory = try SessionDirectory(at: path, decoders: decoders)
    return try film(
      of: directory.segments(of: clip), in: directory.session, from: directory, showing: clip, as: form, to: target,
      gaps: gaps, zeroMs: zeroMs, progress: progress)
  }

  /// Writes a film of segments. The file gets its name when it is whole: a killed process leaves nothing.
  ///
  /// - Parameters:
  ///   - videos: those of the segments.
  ///   - zeroMs: the instant that counts as 0, for pictures without a clock.
  static func film(
    of part: ClippedSession, in session: SessionID, from videos: some SegmentVideos, showing clip: Clip,
    as form: FilmForm, to target: String, gaps: GapRule, zeroMs: Int64? = nil, progress: (Int, Int) throws -> Void
  ) throws -> StitchedSession {
    var plan = try StitchPlan(part, of: clip, gaps: gaps, as: form, in: session, haveEqualKeys: videos.keyComparison)
    plan.zeroMs = zeroMs
    let target = try Self.file(target)
    let file = try OutputFile(unnamedIn: DurableFile.parentDirectory(of: target))
    let written = try write(plan, of: videos, as: form, to: file, named: target, progress: progress)
    try file.publish(as: target)
    let (from, to) = (plan.shown.lowerBound, plan.shown.upperBound)
    var film = StitchedSession(
      file: target, session: session.description, durationMs: form.isPoster ? 0 : plan.durationMs,
      segments: form.isPoster ? 1 : plan.parts.count, bytes: written.bytes, shown: from..<(form.isPoster ? from : to),
      speed: plan.speed, map: plan.map, namedMap: form.isPoster ? nil : plan.namedMap(of: session.description),
      pictures: written.pictures, merged: written.merged, size: written.size, zeroMs: zeroMs,
      warnings: part.warnings + plan.omissions(in: target))
    film.gaps = plan.gaps
    film.captions = plan.captions
    film.sizes = Set(plan.parts.map { PixelSize(width: $0.segment.codedWidth, height: $0.segment.codedHeight) })
    return film
  }

  /// - Returns: the film's size in bytes.
  package static func write(
    _ plan: StitchPlan, of videos: some SegmentVideos, to file: OutputFile,
    progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> Int {
    var writer = try FilmWriter(file, plan: plan)
    for (index, part) in plan.parts.enumerated() {
      try writer.append(part, from: videos)
      try progress(index + 1, plan.parts.count)
    }
    return try writer.finish()
  }

  /// Returns the starts of the segments whose videos a film reads.
  ///
  /// Parameters and errors as of ``film(of:showing:as:to:gaps:zeroMs:decoders:progress:)``.
  package static func videos(
    of path: String, showing clip: Clip, as form: FilmForm, to target: String, gaps: GapRule
  ) throws -> Set<Int64> {
    _ = try file(target)
    let directory = try SessionDirectory(at: path)
    let part = try directory.segments(of: clip)
    // Key frames tell how long the picture does not change.
    if clip.idle != nil, !clip.speed.isFast { return Set(part.segments.map(\.startMs)) }
    let plan = try StitchPlan(part, of: clip, gaps: gaps, as: form, in: directory.session)
    return Set(plan.parts.prefix(form.isPoster ? 1 : .max).map(\.segment.startMs))
  }

  /// Writes a session's playlist and fragments into the directory `target`, the playlist last.
  ///
  /// - Parameters:
  ///   - path: a published session, `OUTPUT/SESSION`.
  ///   - target: the directory to write, or one with files of the same session.
  ///   - decoders: the processes that read segments; nil to read trusted segments in this process.
  ///   - progress: called with the number of segments done and of all; an error that it throws ends the work.
  /// - Returns: the facts of the playlist.
  /// - Throws: `BadSession` when the segments differ from their manifests, `DiskError`.
  public static func hls(
    of path: String, to target: String, decoders: DecoderForkServer? = nil,
    progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> StitchedSession {
    let directory = try SessionDirectory(at: path, decoders: decoders)
    let session = try directory.segments(of: .whole)
    let segments = session.segments
    let target = try Self.target(target, in: { $0 })
    guard try !DurableFile.exists(target) || DurableFile.isDirectory(target) else {
      throw BadTarget(path: target, cause: "no directory", advice: "name a directory")
    }
    let package = HLSPackage(path: target, temporary: "\(target)/.\(WorkerID()).part")
    let map = NamedMap(ofPlaylistOf: session, directory.session)
    let captions = FilmCaptions(session.marks.labels, in: map.map.shown, isWhole: true)
    let bytes = try package.write(
      segments, from: directory, dates: map.dateRanges, captions: captions.captions, progress: progress)
    var stream = StitchedSession(
      file: "\(target)/\(HLSPlaylist.file)", session: directory.session.description,
      durationMs: segments[segments.count - 1].endMs - segments[0].startMs, segments: segments.count, bytes: bytes,
      shown: segments[0].startMs..<segments[segments.count - 1].endMs, map: map.map, namedMap: map,
      warnings: session.warnings)
    stream.captions = captions
    return stream
  }

  /// Returns the path of a file to write or to replace, which must not be in a published session.
  ///
  /// - Throws: ``BadTarget``.
  package static func file(_ path: String) throws -> String {
    let target = try Self.target(path, in: DurableFile.parentDirectory)
    let parent = DurableFile.parentDirectory(of: target)
    guard DurableFile.isReachableDirectory(parent) else {
      throw BadTarget(path: target, cause: "no directory \(parent)", advice: "make it first")
    }
    guard !DurableFile.exists(target) || DurableFile.isFile(target) else {
      throw BadTarget(path: target, cause: "no plain file", advice: "name a file to write or to replace")
    }
    return target
  }

  /// Returns a path without links, which must not be in a published session.
  ///
  /// - Parameter directory: returns the directory that the files are written into.
  package static func target(_ path: String, in directory: (String) -> String) throws -> String {
    let resolved = DurableFile.resolved(path)
    var parent = DurableFile.resolved(directory(resolved))
    if ViewList.directories.contains(lastComponent(of: parent)) {
      parent = DurableFile.parentDirectory(of: parent)
    }
    guard !DurableFile.exists(parent + "/" + IndexText.jsonFile) else {
      throw BadTarget(path: path, cause: "inside a published session", advice: "write to another place")
    }
    return resolved
  }
}
