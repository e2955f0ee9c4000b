import FileSystem
import FrameBatches
import Glibc
import WorkQueues

/// A batch that is written beside the journal, where workers and `prune` do not look.
struct BatchDraft {
  /// The batch's name and facts; nil if no picture is left.
  let batch: Batch?
  /// The pictures in it.
  let pictures: [LoosePicture]
  /// The names of its files that were never synced.
  let unsynced: [String]
  /// Files that have changed since they were found.
  let changed: [FolderFile]
  /// Files that are gone.
  let gone: [FolderFile]
  /// Files that cannot be read.
  let left: [LeftFile]

  /// Copies the pictures of a plan into a new directory, and describes them there. Nothing is synced: see ``sync(_:in:)``.
  ///
  /// - Parameter drafts: the directory of drafts.
  init(
    _ plan: BatchPlan, in drafts: String, _ held: HeldPictures, _ source: any PictureSource, _ rules: BatchRules,
    timeZone: String?
  ) throws {
    guard let session = SessionID(plan.session) else {
      throw BadBatch(
        "read", plan.pictures[0].file.name, "the session id \"\(plan.session)\" cannot be used", advice: SessionID.rule)
    }
    let name = Self.newName(of: session, at: plan.pictures[0].timeMs)
    let path = drafts + "/" + name
    try check("mkdir", path) { mkdir(path, 0o775) }
    do {
      var copied: [LoosePicture] = []
      var (changed, gone, left) = ([FolderFile](), [FolderFile](), [LeftFile]())
      let names = FrameNames(plan.pictures)
      for picture in plan.pictures {
        let target = path + "/" + names[picture]
        if let copy = picture.held {
          if try held.put(copy, as: target) { copied.append(picture) } else { gone.append(picture.file) }
          continue
        }
        switch try source.read(picture.file) {
        case .bytes(let bytes):
          try DurableFile.create(target, bytes, isDurable: false)
          copied.append(picture)
        case .refused(let reason): left.append(LeftFile(name: picture.file.name, reason: reason))
        case .changed: changed.append(picture.file)
        case .gone: gone.append(picture.file)
        }
      }
      (self.changed, self.gone, self.left, pictures) = (changed, gone, left, copied)
      guard !copied.isEmpty else {
        try check("rmdir", path) { rmdir(path) }
        (batch, unsynced) = (nil, [])
        return
      }
      // A sync of a synced file may cost one of the disk.
      unsynced = copied.filter { !$0.isSynced }.map { names[$0] } + [NativeFormat.description]
      var batch = Self.batch(named: name, session, source.refined(copied, before: plan.nextMs), names, plan, rules)
      batch.timeZone = timeZone
      batch.traceParent = KeptTrace.of(path + "/" + names[copied[0]])
      try DurableFile.create(
        path + "/" + NativeFormat.description, NativeFormat.description(of: batch), isDurable: false)
      self.batch = batch
    } catch {
      try? DurableFile.removeTree(path)
      throw error
    }
  }

  private static func newName(of session: SessionID, at timeMs: Int64) -> String {
    let random = String(UInt64.random(in: 0 ... .max), radix: 36)
    return "\(session)@\(timeMs).\(String(repeating: "0", count: 13 - random.utf8.count))\(random)"
  }

  /// Syncs drafts with their files. The first sync of a file system writes the metadata of all files: the others cost less. Many
  /// drafts share one sync of the file system.
  ///
  /// - Parameter unsynced: the files of each draft that are to be synced.
  static func sync(_ unsynced: [(draft: String, files: [String])], in drafts: String) throws {
    if unsynced.count > Directory.few, try Directory(opening: drafts).syncFileSystem() { return }
    for (name, files) in unsynced {
      let directory = try Directory(opening: drafts + "/" + name)
      for name in files {
        guard let file = try OpenFile(name, in: directory) else {
          throw DiskError("open", directory.path + "/" + name, code: ENOENT)
        }
        try check("fsync", directory.path + "/" + name) { fsync(file.descriptor) }
      }
      try directory.sync()
    }
    // The drafts have to outlive a power cut if the journal's next lines do.
    try Directory(opening: drafts).sync()
  }

  private static func batch(
    named name: String, _ session: SessionID, _ pictures: [LoosePicture], _ names: FrameNames, _ plan: BatchPlan,
    _ rules: BatchRules
  ) -> Batch {
    let instants = pictures.map(\.timeMs)
    let last = instants[instants.count - 1]
    let known = instants + (plan.nextMs.map { [$0] } ?? [])
    let intervalMs = rules.intervalMs ?? (known.count > 1 ? Batch.nominalInterval(of: known) : plan.intervalMs ?? 1_000)
    // The distances of a recorder that captures on change say nothing about its last picture.
    let isGuessed = pictures[0].capture == .onChange && rules.intervalMs == nil
    let holdMs = isGuessed ? min(intervalMs, 1_000) : intervalMs
    var batch = Batch(
      name: name, session: session, intervalMs: intervalMs,
      endMs: plan.nextMs.map { max($0, last + 1) } ?? last + holdMs, capture: pictures[0].capture,
      isFinal: plan.isFinal, frames: pictures.map { Frame(source: names[$0], path: names[$0], timeMs: $0.timeMs) },
      refused: [], warnings: [], metadata: .object([:]))
    // Behind a late picture, something else may be published before the next one that waits.
    batch.isEndOpen = plan.nextMs == nil || plan.isLate
    batch.clockOffsetMs = pictures[0].clockOffsetMs
    return batch
  }
}

/// The names of a batch's frames: those of the pictures, with the capture time where two have one name.
private struct FrameNames {
  private var names: [FolderFile: String] = [:]
  /// Bytes of a file's name at most.
  private static let longest = 255

  init(_ pictures: [LoosePicture]) {
    var counts = Dictionary(pictures.map { ($0.name, 1) }, uniquingKeysWith: +)
    // The description of the batch has this name.
    counts[NativeFormat.description, default: 0] += 1
    var used = Set(counts.keys)
    for picture in pictures {
      names[picture.file] =
        counts[picture.name] == 1 ? picture.name : Self.unused(picture.name, picture.timeMs, &used)
    }
  }

  subscript(picture: LoosePicture) -> String { names[picture.file] ?? picture.name }

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
