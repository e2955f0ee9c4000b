// A published session in one piece: as a film, or as HLS. Nothing is re-encoded.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

/// The result of writing.
public struct StitchedSession: Sendable, Equatable {
  public let file: String
  public let session: String
  public let durationMs: Int64
  public let segments: Int
  public let bytes: Int
  /// Problems of the session that show in the film: missing parts.
  package let warnings: [Problem]

  /// One line of JSON.
  public var json: String {
    JSONValue.object([
      "file": .string(file), "session": .string(session), "durationMs": .number(durationMs),
      "segments": .number(segments), "bytes": .number(bytes), "warnings": .array(warnings.map(\.json)),
    ]).line
  }
}

/// Why nothing can be written where it was asked for.
package struct BadTarget: Error, Equatable, CustomStringConvertible {
  package let path: String
  package let cause: String
  package let advice: String

  package init(path: String, cause: String, advice: String) {
    self.path = path
    self.cause = cause
    self.advice = advice
  }

  package var description: String { "write \(path): \(cause); \(advice)" }
}

/// Makes one film, or HLS, of a session, without encoding it again.
public enum Stitching {
  /// Writes a session's film, replacing what is at `target` at once or not at all.
  ///
  /// - Parameters:
  ///   - path: a published session, `OUTPUT/SESSION`.
  ///   - target: the MP4 to write.
  ///   - decoders: where segments are read; nil for right here, for those that can be trusted.
  ///   - progress: called with the segments done and their number; what it throws ends the work.
  /// - Throws: `BadSession` when the segments are not what their manifests say, `DiskError`.
  public static func film(
    of path: String, to target: String, gaps: GapRule = .hold, decoders: DecoderForkServer? = nil,
    progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> StitchedSession {
    let directory = try SessionDirectory(at: path, decoders: decoders)
    let segments = try directory.soundSegments()
    let target = try Self.file(target)
    let plan = StitchPlan(segments, gaps: gaps)
    let temporary = "\(target).part"
    let file = try OutputFile(restarting: temporary)
    do {
      let bytes = try write(plan, of: directory, to: file, progress: progress)
      try file.finish()
      try check("rename", target) { rename(temporary, target) }
      try Directory(opening: DurableFile.parentDirectory(of: target)).sync()
      return StitchedSession(
        file: target, session: directory.session.description, durationMs: plan.durationMs, segments: plan.parts.count,
        bytes: bytes, warnings: SessionOrder.missingParts(of: segments))
    } catch {
      unlink(temporary)
      throw error
    }
  }

  /// Writes a film.
  ///
  /// - Returns: its size in bytes.
  package static func write(
    _ plan: StitchPlan, of directory: SessionDirectory, to file: OutputFile,
    progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> Int {
    var writer = try FilmWriter(file, plan: plan)
    for (index, part) in plan.parts.enumerated() {
      try writer.append(part, from: directory)
      try progress(index + 1, plan.parts.count)
    }
    return try writer.finish()
  }

  /// Writes a session's playlist and fragments into the directory `target`, the playlist last.
  ///
  /// Parameters and errors as of ``film(of:to:gaps:decoders:progress:)``.
  public static func hls(
    of path: String, to target: String, decoders: DecoderForkServer? = nil,
    progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> StitchedSession {
    let directory = try SessionDirectory(at: path, decoders: decoders)
    let segments = try directory.soundSegments()
    let target = try Self.target(target, besides: { $0 })
    guard try !DurableFile.exists(target) || DurableFile.isDirectory(target) else {
      throw BadTarget(path: target, cause: "no directory", advice: "name a directory")
    }
    let package = HLSPackage(path: target, temporary: "\(target)/.\(WorkerID()).part")
    let bytes = try package.write(segments, from: directory, progress: progress)
    return StitchedSession(
      file: "\(target)/\(HLSPlaylist.file)", session: directory.session.description,
      durationMs: segments[segments.count - 1].endMs - segments[0].startMs, segments: segments.count, bytes: bytes,
      warnings: SessionOrder.missingParts(of: segments))
  }

  /// Where to write a file: a plain one, new or to be replaced, never among what is published.
  package static func file(_ path: String) throws -> String {
    let target = try Self.target(path, besides: DurableFile.parentDirectory)
    let parent = DurableFile.parentDirectory(of: target)
    guard DurableFile.isReachableDirectory(parent) else {
      throw BadTarget(path: target, cause: "no directory \(parent)", advice: "make it first")
    }
    guard !DurableFile.exists(target) || DurableFile.isFile(target) else {
      throw BadTarget(path: target, cause: "no plain file", advice: "name a file to write or to replace")
    }
    return target
  }

  /// Where to write: links followed, and never among what is published.
  ///
  /// - Parameter besides: the directory that the files come into, by the path.
  private static func target(_ path: String, besides directory: (String) -> String) throws -> String {
    let resolved = DurableFile.resolved(path)
    var place = DurableFile.resolved(directory(resolved))
    if [HLSPackage.directory, ThumbnailPackage.directory].contains(lastComponent(of: place)) {
      place = DurableFile.parentDirectory(of: place)
    }
    guard !DurableFile.exists(place + "/session.json") else {
      throw BadTarget(path: path, cause: "inside a published session", advice: "write to another place")
    }
    return resolved
  }
}
