import Encoding
import FileSystem
import FrameBatches
import JSON
import WorkQueues

/// The report on a batch in quarantine.
package enum BatchReport {
  /// Maximum size of an archive that is added as it is, in bytes.
  private static let maximumBytes = 1 << 31

  /// Writes a report.
  ///
  /// - Parameters:
  ///   - path: the batch.
  ///   - reason: the members of the file beside it; nil if there is none.
  ///   - directory: gets the report.
  ///   - hasPixels: whether it has the batch's files, too.
  ///   - options: how the batch is read and decoded.
  /// - Throws: ``DiskError``.
  package static func write(
    on path: String, reason: [String: JSONValue]?, to directory: String, hasPixels: Bool,
    _ options: BatchEncoder.Options, _ origin: Report.Origin
  ) throws -> Report.Written {
    var report = try Report(of: "batch", in: directory, hasPixels: hasPixels, origin) { $0 == "batch.json" }
    let isFile = DurableFile.isFile(path)
    let size = isFile ? JSONValue.number(try DurableFile.size(of: path)) : .null
    report.members["batch"] = .object(["name": report.name(lastComponent(of: path)), "bytes": size])
    // Names first: reasons repeat them.
    try addFiles(of: path, options, to: &report)
    report.members["reason"] = report.kept(reason.map(JSONValue.object) ?? .null, as: ReportMembers.reason)
    // A batch that has killed workers could kill this process, too.
    if reason?["attempt"]?.integer ?? 0 <= Claim.attempts { try addSessions(of: path, options, to: &report) }
    if hasPixels, isFile, let bytes = try DurableFile.contents(of: path, limit: maximumBytes) {
      try report.add("batch/" + lastComponent(of: path), bytes)
    }
    return try report.finish()
  }

  private static func addFiles(of path: String, _ options: BatchEncoder.Options, to report: inout Report) throws {
    let addsFiles = try report.hasPixels && DurableFile.isDirectory(path)
    var files: [JSONValue] = []
    do {
      try BatchFileList.forEach(of: path, limits: options.limits, unpacker: options.decoders) { file in
        var members = ["name": report.name(file.name)]
        members["refused"] = file.refusal.map { report.message($0) }
        if let bytes = file.bytes {
          members["bytes"] = .number(bytes.count)
          if let kind = ImageKind(of: bytes.prefix(1_024)) {
            members["kind"] = .string(kind.name)
            // The digest of a short text would allow to guess it.
            members["sha256"] = .string(SHA256.hex(of: bytes))
          }
          if addsFiles { try report.add("batch/" + file.name, bytes) }
        }
        files.append(.object(members))
      }
    } catch let bad as BadBatch {
      report.members["unreadable"] = fault(bad, &report)
    }
    report.members["files"] = .array(files)
  }

  /// Adds the batch as `encode --dry-run` shows it, and the time of each stage.
  private static func addSessions(
    of path: String, _ options: BatchEncoder.Options, to report: inout Report
  ) throws {
    var options = options
    let profile = Profile()
    options.profile = profile
    do {
      let (found, refused, _) = try InspectedBatch.sessions(of: path, options)
      report.members["sessions"] = .array(found.map { report.kept($0.value, as: ReportMembers.inspected) })
      report.members["refused"] = .array(refused.map { fault($0.error, &report) })
    } catch let bad as BadBatch {
      report.members["refused"] = .array([fault(bad, &report)])
    }
    report.members["profile"] = profile.measured.json
  }

  private static func fault(_ bad: BadBatch, _ report: inout Report) -> JSONValue {
    report.kept(
      .object(["operation": .string(bad.operation), "file": .string(bad.file), "cause": .string(bad.cause)]),
      as: ReportMembers.reason)
  }
}
