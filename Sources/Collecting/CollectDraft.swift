import FileSystem
import FrameBatches
import Glibc
import JSON

/// A batch that is written beside the journal, where workers and `prune` do not look.
struct CollectDraft {
  /// nil if no frame is left.
  let record: CollectRecord?
  /// Files that have changed since they were found.
  let changed: [FolderFile]
  /// Files that are gone.
  let gone: [FolderFile]
  /// Files that cannot be read.
  let left: [LeftFile]
  /// The frames' copies that the batch has now.
  let copies: [String]

  /// Copies the frames of a plan into a new directory, and describes them there. Nothing is synced: see ``sync(_:in:)``.
  ///
  /// - Parameters:
  ///   - home: the directory of the journal.
  ///   - folder: the watched folder.
  ///   - times: gives frames their times in one batch.
  init(
    _ plan: BatchPlan, in home: String, from folder: String, _ held: HeldPictures, times: CaptureTimes, limits: Limits
  ) throws {
    guard let session = SessionID(plan.session) else {
      throw BadBatch(
        "collect", folder, "the session id \(plan.session) cannot be used",
        advice: "name one with --session; \(SessionID.rule)")
    }
    let number = String(UInt64.random(in: 0 ... .max), radix: 36)
    let name =
      "\(session)@\(plan.frames[0].timeMs).\(String(repeating: "0", count: 13 - number.utf8.count))\(number)"
    let path = home + "/" + name
    try check("mkdir", path) { mkdir(path, 0o775) }
    do {
      var copied: [CapturedFile] = []
      var (changed, gone, left) = ([FolderFile](), [FolderFile](), [LeftFile]())
      let names = FrameNames(plan.frames)
      var sources = SourceFolders(folder)
      for frame in plan.frames {
        let target = path + "/" + names[frame]
        if let copy = frame.held {
          try held.put(copy, as: target)
          copied.append(frame)
          continue
        }
        switch try sources.read(frame.file, limits: limits) {
        case .bytes(let bytes):
          try DurableFile.create(target, bytes, isDurable: false)
          copied.append(frame)
        case .refused(let reason): left.append(LeftFile(name: frame.file.name, reason: reason))
        case .changed: changed.append(frame.file)
        case .gone: gone.append(frame.file)
        }
      }
      (self.changed, self.gone, self.left) = (changed, gone, left)
      guard !copied.isEmpty else {
        try check("rmdir", path) { rmdir(path) }
        (record, copies) = (nil, [])
        return
      }
      let batch = Self.batch(
        named: name, session, times.refined(copied, before: plan.nextMs), names, plan, times.options)
      try DurableFile.create(
        path + "/" + NativeFormat.description, NativeFormat.description(of: batch), isDurable: false)
      copies = copied.compactMap(\.held)
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

  /// Syncs drafts with all their files. The first sync of a file system writes the metadata of all files: the others cost less. Many
  /// drafts share one sync of the file system.
  static func sync(_ drafts: [String], in home: String) throws {
    if drafts.count > Directory.few, try Directory(opening: home).syncFileSystem() { return }
    for draft in drafts {
      let directory = try Directory(opening: home + "/" + draft)
      for entry in try directory.entries() {
        guard let file = try OpenFile(entry.name, in: directory) else {
          throw DiskError("open", directory.path + "/" + entry.name, code: ENOENT)
        }
        try check("fsync", directory.path + "/" + entry.name) { fsync(file.descriptor) }
      }
      try directory.sync()
    }
    // The drafts have to outlive a power cut if the journal's next lines do.
    try Directory(opening: home).sync()
  }

  private static func batch(
    named name: String, _ session: SessionID, _ frames: [CapturedFile], _ names: FrameNames, _ plan: BatchPlan,
    _ options: InputOptions
  ) -> Batch {
    let instants = frames.map(\.timeMs)
    let last = instants[instants.count - 1]
    let known = instants + (plan.nextMs.map { [$0] } ?? [])
    let intervalMs =
      options.intervalMs ?? (known.count > 1 ? Batch.nominalInterval(of: known) : plan.intervalMs ?? 1_000)
    let endMs = plan.nextMs.map { max($0, last + 1) } ?? last + intervalMs
    var batch = Batch(
      name: name, session: session, intervalMs: intervalMs, endMs: endMs,
      capture: frames[0].capture, isFinal: plan.isFinal,
      frames: frames.map { Frame(source: names[$0], path: names[$0], timeMs: $0.timeMs) }, refused: [],
      warnings: [], metadata: .object([:]))
    batch.timeZone = options.timeZone?.description
    return batch
  }
}

/// The names of a batch's frames: those of the sources, with the capture time where two have one name.
private struct FrameNames {
  private var names: [FolderFile: String] = [:]
  /// Bytes of a file's name at most.
  private static let longest = 255

  init(_ frames: [CapturedFile]) {
    let counts = Dictionary(frames.map { (lastComponent(of: $0.file.name), 1) }, uniquingKeysWith: +)
    var used = Set(counts.filter { $0.value == 1 }.keys)
    for frame in frames {
      let name = lastComponent(of: frame.file.name)
      names[frame.file] = counts[name] == 1 ? name : Self.unused(name, frame.timeMs, &used)
    }
  }

  subscript(frame: CapturedFile) -> String { names[frame.file] ?? lastComponent(of: frame.file.name) }

  private static func unused(_ name: String, _ timeMs: Int64, _ used: inout Set<String>) -> String {
    let point = name.lastIndex(of: ".").flatMap { name[$0...].utf8.count <= 16 ? $0 : nil } ?? name.endIndex
    var end = "-\(timeMs)" + name[point...]
    var number = 1
    while true {
      let candidate = String(name[..<point]).shortened(to: longest - end.utf8.count) + end
      if used.insert(candidate).inserted { return candidate }
      number += 1
      end = "-\(timeMs)-\(number)" + name[point...]
    }
  }
}
