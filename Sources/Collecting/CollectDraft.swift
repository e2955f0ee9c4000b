import FileSystem
import FrameBatches
import Glibc
import JSON

/// A batch that is written beside the journal, where workers and `prune` do not look.
struct CollectDraft {
  /// nil if no frame is left.
  let record: CollectRecord?
  /// Files that have changed or are gone since they were found.
  let dropped: [String]
  /// Files that cannot be read.
  let left: [LeftFile]

  /// Copies the frames of a plan into a new directory, describes them there, and syncs all.
  ///
  /// - Parameters:
  ///   - home: the directory of the journal.
  ///   - refine: gives frames their times in one batch.
  init(
    _ plan: BatchPlan, in home: String, from folder: Directory, options: InputOptions, limits: Limits,
    refine: ([CapturedFile]) -> [CapturedFile]
  ) throws {
    guard let session = SessionID(plan.session) else {
      throw BadBatch("collect", folder.path, "the session id \(plan.session) cannot be used", advice: SessionID.rule)
    }
    let number = String(UInt64.random(in: 0 ... .max), radix: 36)
    let name =
      "\(session)@\(plan.frames[0].timeMs).\(String(repeating: "0", count: 13 - number.utf8.count))\(number)"
    let path = home + "/" + name
    try check("mkdir", path) { mkdir(path, 0o775) }
    do {
      var copied: [CapturedFile] = []
      var dropped: [String] = []
      var left: [LeftFile] = []
      for frame in plan.frames {
        switch try Self.read(frame.file, in: folder, limits: limits) {
        case .bytes(let bytes)?:
          try DurableFile.create(path + "/" + frame.file.name, bytes)
          copied.append(frame)
        case .refused(let refusal)?: left.append(LeftFile(name: frame.file.name, reason: "\(refusal)"))
        case nil: dropped.append(frame.file.name)
        }
      }
      (self.dropped, self.left) = (dropped, left)
      guard !copied.isEmpty else {
        try check("rmdir", path) { rmdir(path) }
        record = nil
        return
      }
      let batch = Self.batch(named: name, session, refine(copied), plan, options)
      try DurableFile.create(path + "/" + NativeFormat.description, NativeFormat.description(of: batch))
      try Directory(opening: path).sync()
      // The draft has to outlive a power cut if the journal's next line does.
      try Directory(opening: home).sync()
      record = CollectRecord(
        batch: name, group: plan.group,
        session: CollectedSession(
          name: plan.session, lastMs: batch.frames[batch.frames.count - 1].timeMs, endMs: batch.endMs,
          intervalMs: batch.intervalMs),
        isFinal: plan.isFinal, files: copied.map(\.file))
    } catch {
      try? DurableFile.removeTree(path)
      throw error
    }
  }

  /// The bytes of a file that is still as it was found; nil if it is not.
  private static func read(_ file: FolderFile, in folder: Directory, limits: Limits) throws -> FileContents? {
    do {
      guard folder.sourceStamp(of: file.name) == file.stamp,
        case .bytes(let bytes)? = try folder.contents(of: file.name, limit: limits.fileBytes),
        CompleteImage.fault(in: bytes) == nil, folder.sourceStamp(of: file.name) == file.stamp
      else { return nil }
      return .bytes(bytes)
    } catch let error as DiskError where [EACCES, EPERM, EIO].contains(error.code) {
      // Others can be read.
      return .refused("\(error)")
    }
  }

  private static func batch(
    named name: String, _ session: SessionID, _ frames: [CapturedFile], _ plan: BatchPlan, _ options: InputOptions
  ) -> Batch {
    let instants = frames.map(\.timeMs)
    let last = instants[instants.count - 1]
    let known = instants + (plan.nextMs.map { [$0] } ?? [])
    let intervalMs =
      options.intervalMs ?? (known.count > 1 ? Batch.nominalInterval(of: known) : plan.intervalMs ?? 1_000)
    let endMs = plan.nextMs.map { max($0, last + 1) } ?? last + intervalMs
    return Batch(
      name: name, session: session, intervalMs: intervalMs, endMs: endMs,
      capture: frames[0].capture, isFinal: plan.isFinal,
      frames: frames.map { Frame(source: $0.file.name, path: $0.file.name, timeMs: $0.timeMs) }, refused: [],
      warnings: [], metadata: .object([:]))
  }
}
