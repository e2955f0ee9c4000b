// Checks a published session against its manifests.

import Encoding
import FileSystem
import Glibc
import JSON

/// The result of a verification.
package struct VerificationReport: Sendable, Equatable {
  package let session: String
  package let segments: Int
  package let frames: Int
  package let durationMs: Int64
  package let problems: [Problem]
  /// Nil if it is unknown.
  package var health: HealthSummary?

  /// One line of JSON.
  package var json: String {
    let health: [String: JSONValue] = health.map { [SegmentHealth.key: $0.json] } ?? [:]
    return JSONValue.object([
      "session": .string(session), "segments": .number(segments), "frames": .number(frames),
      "durationMs": .number(durationMs), "ok": .bool(problems.isEmpty), "problems": .array(problems.map(\.json)),
    ]).setting(health).line
  }
}

extension VerificationReport {
  /// The report on a path that is no session.
  package init(of failure: BadSession) {
    self.init(
      session: failure.file, segments: 0, frames: 0, durationMs: 0,
      problems: [Problem(file: failure.file, what: "\(failure.cause); \(failure.advice)")])
  }
}

package enum Verification {
  /// Checks one session.
  ///
  /// - Parameters:
  ///   - path: `OUTPUT/SESSION`.
  ///   - repair: rebuild `session.json`, `session.ffconcat` and the events for Sentry if they differ from the manifests.
  ///   - decoders: the processes that decode segments; nil to decode trusted segments in this process.
  ///   - remedy: how a view that differs is rebuilt, for messages.
  ///   - progress: called with the number of segments checked and of all; an error that it throws ends the work.
  /// - Throws: ``BadSession`` when it is no session, ``DiskError``.
  package static func report(
    on path: String, repair: Bool = false, decoders: DecoderForkServer? = nil,
    remedy: String = "--repair rebuilds it when all segments are right",
    progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> VerificationReport {
    let directory = try SessionDirectory(at: path, decoders: decoders)
    let names = try Directory(opening: directory.path).entries().map(\.name)
    if try names.allSatisfy({ try DurableFile.isDirectory(path + "/" + $0) }), !names.isEmpty {
      throw BadSession(
        path, "no session, but a directory of directories", advice: "name sessions: OUTPUT/SESSION, or OUTPUT/*")
    }
    var problems: [Problem] = []
    var segments: [PublishedSegment] = []
    var sessions: Set<String> = []
    let before = try directory.retention()
    let starts = names.compactMap { SegmentName.start(ofManifest: $0) }.filter { before?.removes($0) != true }.sorted()
    for (index, start) in starts.enumerated() {
      try progress(index, starts.count)
      do {
        let (segment, json) = try directory.manifest(start)
        sessions.insert(json.object?["session"]?.string ?? "")
        segments.append(segment)
        guard let video = try directory.bytes(of: segment.file, limit: SegmentManifest.maximumVideoBytes) else {
          let isThere = try DurableFile.isThere(directory.path + "/" + segment.file)
          problems.append(Problem(file: segment.file, what: isThere ? "not a plain file of its size" : "missing"))
          continue
        }
        problems += try SegmentVerification.problems(json, segment, bytes: video, reader: directory.reader)
      } catch let damage as DamagedOutput {
        problems.append(Problem(file: SegmentName.manifest(start), what: damage.cause))
      }
    }
    // First segments may have been removed meanwhile.
    let retention = try directory.retention()
    segments.removeAll { retention?.removes($0.startMs) == true }
    problems.removeAll { retention?.removes(file: $0.file) == true }
    if sessions.subtracting([directory.session.description]).count > 0 {
      let others = sessions.sorted().joined(separator: ", ")
      problems.append(
        Problem(file: directory.path, what: "called \(directory.session), but its manifests say: \(others)"))
    }
    problems += SessionOrder.overlaps(of: segments)
    problems += SessionOrder.missingParts(of: segments, isCut: retention != nil)
    problems += orphans(names, segments).filter { orphan in
      // Files that are being removed.
      retention?.removes(file: orphan.file) != true || retention?.isRemoving == false && retention == before
    }
    let known = Set(segments.map(\.file))
    problems += try directory.listedVideos().filter { !known.contains($0) }.map { .withoutManifest($0) }
    problems += problemsOfEnd(directory)
    problems += try directory.problemsOfTexts(names, segments)
    problems += try directory.problemsOfAddedLabels(names, segments)
    problems += try problemsOfViews(names, segments, directory, repair: repair && problems.isEmpty, remedy)
    if segments.isEmpty { problems.append(Problem(file: path, what: "no published segment")) }
    let session = SessionIndex(session: directory.session, segments: segments)
    return VerificationReport(
      session: directory.session.description, segments: segments.count, frames: session?.frames ?? 0,
      durationMs: session?.durationMs ?? 0, problems: problems, health: session?.health)
  }

  /// Returns files that no manifest names.
  private static func orphans(_ names: [String], _ segments: [PublishedSegment]) -> [Problem] {
    let views =
      ViewList.all.flatMap { $0.names(of: segments) } + SessionDirectory.textNames(of: segments)
      + segments.map { SegmentName.labels($0.startMs) }
    let known = Set(
      segments.map(\.file) + views + [".lock", SessionEnd.file, SessionRetention.file, ExportedFile.directory])
    return names.filter { !known.contains($0) && SegmentName.start(ofManifest: $0) == nil }
      .map { Problem(file: $0, what: "an orphan: no manifest knows it") }
  }

  private static func problemsOfEnd(_ directory: SessionDirectory) -> [Problem] {
    do {
      _ = try directory.recordedEnd()
      return []
    } catch {
      return [Problem(file: SessionEnd.file, what: "\(error)")]
    }
  }

  private static func problemsOfViews(
    _ names: [String], _ segments: [PublishedSegment], _ directory: SessionDirectory, repair: Bool, _ remedy: String
  ) throws -> [Problem] {
    if segments.isEmpty { return [] }
    // A worker updates the views now, or the next one will.
    if !repair && MarkerFiles(beside: directory).isThere(directory.session) { return [] }
    var problems: [Problem] = []
    // `session.json` comes first.
    let removed = try directory.retention()?.segments ?? 0
    let files = ViewList.all.reversed().flatMap {
      $0.files(of: segments, behind: removed, in: directory.session, among: names)
    }
    for (name, wanted) in files where try directory.bytes(of: name, limit: wanted.count) != wanted {
      if repair {
        // Read the manifests again under the lock: another worker may have added segments.
        try directory.locked {
          try SessionViews().update(directory, temporary: directory.path + "/.\(WorkerID())")
        }
      } else {
        let what =
          try !DurableFile.isThere(directory.path + "/" + name) ? "missing" : "not what the segments' manifests say"
        problems.append(Problem(file: name, what: what + "; " + remedy))
      }
    }
    return problems
  }
}

extension SessionDirectory {
  /// Returns the videos that session.json lists.
  package func listedVideos() throws -> [String] {
    guard let json = try bytes(of: IndexText.jsonFile, limit: IndexText.maximumBytes) else { return [] }
    let startMs = try retention()?.startMs ?? .min
    return IndexText.videos(in: json, of: session).filter { SegmentName.start(ofVideo: $0) ?? .max >= startMs }
  }
}

extension Problem {
  /// A video whose manifest is gone: only session.json still lists it.
  package static func withoutManifest(_ file: String) -> Problem {
    Problem(file: file, what: "listed in session.json, but it has no manifest")
  }
}
