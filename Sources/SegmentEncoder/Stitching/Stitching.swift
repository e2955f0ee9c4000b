// A published session in one piece: as a film, or as HLS. Nothing is re-encoded.

import Glibc

/// What was written.
public struct StitchedSession: Sendable, Equatable {
  public let file: String
  public let session: String
  public let durationMs: Int64
  public let segments: Int
  public let bytes: Int

  /// One line of JSON.
  public var json: String {
    JSONValue.object([
      "file": .string(file), "session": .string(session), "durationMs": .number(durationMs),
      "segments": .number(segments), "bytes": .number(bytes),
    ]).line
  }
}

public enum Stitching {
  /// Writes a session's film, replacing what is at `target` at once or not at all.
  ///
  /// - Parameters:
  ///   - path: a published session, `OUTPUT/SESSION`.
  ///   - target: the MP4 to write.
  ///   - progress: called with the segments done and their number; what it throws ends the work.
  /// - Throws: ``BadSession`` when the segments are not what their manifests say, ``DiskError``.
  public static func film(
    of path: String, to target: String, gaps: GapRule = .hold, progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> StitchedSession {
    let (directory, segments) = try published(at: path)
    let plan = FilmPlan(segments, gaps: gaps)
    let temporary = "\(target).\(WorkerID()).part"
    do {
      var writer = try FilmWriter(temporary, plan: plan)
      for (index, part) in plan.parts.enumerated() {
        try writer.append(part, from: directory)
        try progress(index + 1, plan.parts.count)
      }
      let bytes = try writer.finish()
      try check("rename", target) { rename(temporary, target) }
      try Directory(opening: DurableFile.parentDirectory(of: target)).sync()
      return StitchedSession(
        file: target, session: directory.session.description, durationMs: plan.durationMs, segments: plan.parts.count,
        bytes: bytes)
    } catch {
      unlink(temporary)
      throw error
    }
  }

  /// Writes a session's playlist and fragments into the directory `target`, the playlist last.
  ///
  /// Parameters and errors as of ``film(of:to:gaps:progress:)``.
  public static func hls(
    of path: String, to target: String, progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> StitchedSession {
    let (directory, segments) = try published(at: path)
    let package = HLSPackage(path: target, isLive: false, temporary: "\(target)/.\(WorkerID()).part")
    let bytes = try package.update(segments, from: directory, progress: progress)
    return StitchedSession(
      file: "\(target)/\(HLSPlaylist.file)", session: directory.session.description,
      durationMs: segments[segments.count - 1].endMs - segments[0].startMs, segments: segments.count, bytes: bytes)
  }

  /// At least one segment.
  private static func published(at path: String) throws -> (SessionDirectory, [PublishedSegment]) {
    let directory = try SessionDirectory(at: path)
    let segments = try directory.publishedStarts().map { try directory.segment($0) }
    guard !segments.isEmpty else {
      throw BadSession(path, "no published segment", advice: "name a directory OUTPUT/SESSION")
    }
    return (directory, segments)
  }
}
