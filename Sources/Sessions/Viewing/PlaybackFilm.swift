// The films that `serve` makes of a session, and their maps.

import Encoding
import FileSystem
import FrameBatches
import Glibc

extension SessionPlayback {
  /// Returns the map of the session's film, or of that of a part, with its gaps held.
  ///
  /// - Parameter progress: called for each manifest; an error that it throws ends the work.
  /// - Throws: ``BadClip`` if it shows nothing; `BadSession` if the session has changed since; `DiskError`.
  package func map(of clip: Clip, progress: () throws -> Void = {}) throws -> NamedMap {
    try plan(of: clip, as: .mp4, progress: progress).namedMap(of: session.description)
  }

  private func plan(of clip: Clip, as form: FilmForm, progress: () throws -> Void) throws -> StitchPlan {
    let part = try directory.segments(of: clip, progress: progress)
    let known = segments.firstIndex { $0.startMs == part.segments[0].startMs } ?? 0
    guard part.segments == Array(segments[known...].prefix(part.segments.count)), try range(of: clip) == part.range
    else {
      throw BadSession(session.description, "changed meanwhile", advice: "reload the page")
    }
    let haveEqualKeys = directory.keyComparison
    return try StitchPlan(
      part, of: clip, gaps: .hold, as: form, in: session,
      haveEqualKeys: { one, other in
        try progress()
        return try haveEqualKeys(one, other)
      })
  }

  /// Writes the session, or a part of it, as one film with its gaps held, to a file without a name.
  ///
  /// - Parameters:
  ///   - animation: the format and the maximum of the longer side in pixels; nil for an MP4.
  ///   - scratch: a directory with room for it.
  ///   - progress: called for each manifest, and for each segment or picture; an error that it throws ends the work.
  /// - Throws: ``BadClip`` if it shows nothing; ``AnimationRefusal``, ``MissingEncoder``; `BadSession` if a segment is missing or
  ///   damaged, or the session has changed since; `DiskError`.
  package func film(
    of clip: Clip = .whole, as animation: (format: AnimationFormat, maxSide: Int)? = nil, in scratch: String,
    progress: () throws -> Void = {}
  ) throws -> OpenFile {
    let form = animation.map { FilmForm.animation($0.format, maxSide: $0.maxSide) } ?? .mp4
    let plan = try plan(of: clip, as: form, progress: progress)
    let file = try OutputFile(unnamedIn: scratch)
    if let (format, maxSide) = animation {
      _ = try Stitching.write(plan, of: directory, as: format, maxSide: maxSide, to: file) { _, _ in try progress() }
    } else {
      _ = try Stitching.write(plan, of: directory, to: file) { _, _ in try progress() }
    }
    guard let film = try file.forReading() else { throw DiskError("read", scratch, code: EINVAL) }
    return film
  }
}
