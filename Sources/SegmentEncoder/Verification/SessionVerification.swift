// A published session against all that its manifests claim.

import Glibc

/// What was found.
public struct VerificationReport: Sendable, Equatable {
  public let session: String
  public let segments: Int
  public let frames: Int
  public let durationMs: Int64
  public let problems: [Problem]

  /// One line of JSON.
  public var json: String {
    JSONValue.object([
      "session": .string(session), "segments": .number(segments), "frames": .number(frames),
      "durationMs": .number(durationMs), "ok": .bool(problems.isEmpty), "problems": .array(problems.map(\.json)),
    ]).line
  }
}

public enum Verification {
  /// Checks one session.
  ///
  /// - Parameters:
  ///   - path: `OUTPUT/SESSION`.
  ///   - repair: rebuild `session.json` and `session.ffconcat` where they are not what the manifests say.
  ///   - progress: called with the segments checked and their number; what it throws ends the work.
  /// - Throws: ``BadSession`` when it is no session, ``DiskError``.
  public static func report(
    on path: String, repair: Bool = false, progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> VerificationReport {
    let directory = try SessionDirectory(at: path)
    let names = try Directory(opening: directory.path).entries().map(\.name)
    var problems: [Problem] = []
    var segments: [PublishedSegment] = []
    let starts = names.compactMap { SegmentName.start(ofManifest: $0) }.sorted()
    for (index, start) in starts.enumerated() {
      try progress(index, starts.count)
      let name = SegmentName.manifest(start)
      guard let text = try directory.bytes(of: name) else {
        problems.append(Problem(file: name, what: "not a readable file"))
        continue
      }
      do {
        let json = try JSONParser.parse(text)
        let segment = try PublishedSegment(json)
        guard segment.startMs == start, json.object?["session"]?.string == directory.session.description else {
          throw JSONError("of another session or another segment")
        }
        segments.append(segment)
        guard let video = try directory.bytes(of: segment.file) else {
          problems.append(Problem(file: segment.file, what: "missing"))
          continue
        }
        problems += try SegmentVerification.problems(json, segment, bytes: video)
      } catch let error as JSONError {
        problems.append(Problem(file: name, what: error.description))
      }
    }
    problems += problemsOfOrder(segments) + orphans(names, segments)
    problems += try problemsOfIndex(segments, directory, repair: repair && problems.isEmpty)
    if segments.isEmpty { problems.append(Problem(file: path, what: "no published segment")) }
    let session = SessionManifest(session: directory.session, segments: segments)
    return VerificationReport(
      session: directory.session.description, segments: segments.count, frames: session?.frames ?? 0,
      durationMs: session?.durationMs ?? 0, problems: problems)
  }

  /// Overlaps, batches of which parts are missing, gaps that are not where they are said to be.
  private static func problemsOfOrder(_ segments: [PublishedSegment]) -> [Problem] {
    var problems: [Problem] = []
    for (one, next) in zip(segments, segments.dropFirst()) {
      let isSameBatch = one.batchDigest == next.batchDigest
      let overlaps = next.startMs < one.endMs && (isSameBatch || !Conflict.isSeam(one, next))
      if overlaps { problems.append(Problem(file: next.file, what: "overlaps \(one.file)")) }
      if isSameBatch && next.part == one.part + 1 && one.endMs + one.gapAfterMs != next.startMs {
        problems.append(Problem(file: one.file, what: "its gap does not end where the next segment begins"))
      }
    }
    for (digest, parts) in Dictionary(grouping: segments, by: \.batchDigest) {
      let missing = Set(1...max(1, parts[0].parts)).subtracting(parts.map(\.part)).sorted()
      guard !missing.isEmpty || parts.contains(where: { $0.parts != parts[0].parts }) else { continue }
      let which = missing.map(String.init).joined(separator: ", ")
      problems.append(
        Problem(
          file: parts[0].file,
          what: "of batch \(parts[0].batch) (\(digest.prefix(12))), part \(which) of \(parts[0].parts) is missing"))
    }
    return problems
  }

  /// Files that no manifest knows.
  private static func orphans(_ names: [String], _ segments: [PublishedSegment]) -> [Problem] {
    let known = Set(segments.map(\.file) + ["session.json", "session.ffconcat", HLSPackage.directory, ".lock"])
    return names.filter { !known.contains($0) && SegmentName.start(ofManifest: $0) == nil }
      .map { Problem(file: $0, what: "an orphan: no manifest knows it") }
  }

  private static func problemsOfIndex(
    _ segments: [PublishedSegment], _ directory: SessionDirectory, repair: Bool
  ) throws -> [Problem] {
    guard let session = SessionManifest(session: directory.session, segments: segments) else { return [] }
    var problems: [Problem] = []
    for (name, wanted) in session.files where try directory.bytes(of: name) != wanted {
      if repair {
        // From what is there once nobody publishes; another worker may have added to it.
        try directory.locked {
          try SessionIndex().update(directory, temporary: directory.path + "/.\(WorkerID())")
        }
      } else {
        problems.append(Problem(file: name, what: "not what the segments' manifests say; --repair rebuilds it"))
      }
    }
    return problems
  }
}
