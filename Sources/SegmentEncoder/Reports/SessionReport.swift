import Encoding
import FileSystem
import FrameBatches
import JSON
import Sessions

/// The report on a published session.
package enum SessionReport {
  /// Maximum number of other files that are listed.
  private static let maximumFiles = 10_000

  /// Writes a report.
  ///
  /// - Parameters:
  ///   - verification: the result of a check of the session.
  ///   - path: the session's directory, or its copy; nil for one that cannot be read.
  ///   - directory: gets the report.
  ///   - hasPixels: whether it has the videos, too.
  /// - Throws: ``DiskError``.
  package static func write(
    _ verification: VerificationReport, of path: String?, to directory: String, hasPixels: Bool, _ origin: Report.Origin
  ) throws -> Report.Written {
    var report = try Report(of: "session", in: directory, hasPixels: hasPixels, origin, isOwn: isOwn)
    let session = report.name(verification.session)
    report.members["session"] = .object([
      "name": session, "segments": .number(verification.segments), "frames": .number(verification.frames),
      "durationMs": .number(verification.durationMs), "ok": .bool(verification.problems.isEmpty),
    ])
    if let path { try add(path, to: &report) }
    let problems = verification.problems.map { problem in
      JSONValue.object(["file": report.name(lastComponent(of: problem.file)), "problem": report.message(problem.what)])
    }
    report.members["problems"] = .array(problems)
    return try report.finish()
  }

  /// Adds the manifests, the list of files, and the videos if they are wanted.
  private static func add(_ path: String, to report: inout Report) throws {
    let directory = try Directory(opening: path)
    var (manifests, files): ([JSONValue], [JSONValue]) = ([], [])
    for entry in try directory.entries() {
      let bytes = entry.kind == .file ? directory.state(of: entry).map { Int($0.st_size) } : nil
      if SegmentName.start(ofManifest: entry.name) != nil {
        manifests.append(manifest(entry.name, in: directory, &report))
      } else if files.count < maximumFiles {
        files.append(
          .object(["name": report.name(entry.name), "bytes": bytes.map { .number($0) } ?? .null]))
      }
      if report.hasPixels, SegmentName.start(ofVideo: entry.name) != nil,
        case .bytes(let video)? = try directory.contents(of: entry.name, limit: SegmentManifest.maximumVideoBytes)
      {
        try report.add("videos/" + entry.name, video)
      }
    }
    report.members["manifests"] = .array(manifests)
    report.members["files"] = .array(files)
  }

  /// Returns what is kept of a manifest, also of one that is damaged.
  private static func manifest(_ name: String, in directory: Directory, _ report: inout Report) -> JSONValue {
    let contents = try? directory.contents(of: name, limit: SegmentManifest.maximumBytes)
    guard case .bytes(let bytes)? = contents, let json = try? JSONParser.parse(bytes) else {
      return .object(["file": .string(name), "readable": .bool(false)])
    }
    let isSealed = json.object?[SegmentManifest.sealKey]?.string == SegmentManifest.seal(of: json)
    return report.kept(json, as: ReportMembers.manifest).setting(["sealed": .bool(isSealed)])
  }

  /// Whether a name in a session's directory is the program's own.
  private static func isOwn(_ name: String) -> Bool {
    let names = [IndexText.jsonFile, IndexText.scriptFile, SessionEnd.file, SessionRetention.file, ".lock"]
    let starts = [
      SegmentName.start(ofManifest: name), SegmentName.start(ofVideo: name), SegmentName.start(ofEvent: name),
      SegmentName.start(ofText: name), SegmentName.pack(named: name)?.startMs,
    ]
    return names.contains(name) || ViewList.directories.contains(name) || starts.contains { $0 != nil }
  }
}
