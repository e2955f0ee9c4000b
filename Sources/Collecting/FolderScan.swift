// Finds the complete images of a folder. A file counts as complete when it was closed after writing or renamed into place, or
// when two scans see it unchanged; and when its first and last bytes are those of a whole image. A file with another stamp is
// another version, even if it has the same name.

import Batching
import FileSystem
import FrameBatches
import Glibc

/// The files of a folder from scan to scan.
final class FolderScan {
  /// Milliseconds after which a file that is not complete is reported.
  static let patienceMs = 60_000
  /// Milliseconds between scans of a folder that tells of no changes, and until a file is looked at again that may be incomplete.
  static let rescanMs = 2_000
  /// Milliseconds between scans of a folder that tells of changes.
  static let watchedRescanMs = 60_000
  /// Milliseconds between looks at names that are written again, in a folder that tells of no changes.
  static let quickMs = 250
  /// Milliseconds after which a folder's time of modification is sure to be older than the last scan, on any file system.
  private static let settlingMs = 3_000
  /// Files up to which a scan is as cheap as to ask for the folder's time.
  private static let few = 64

  private struct Sight {
    let stamp: FileStamp
    let sinceMs: Int
    var isFound = false
    var isReported = false
    var versions = VersionCount()
  }

  /// The path from the watched folder; empty for that one.
  let below: String
  let path: String
  private let limits: Limits
  private var sights: [String: Sight] = [:]
  /// Names that had other stamps at the last two looks.
  private var changing: Set<String> = []
  private var hasPending = false
  /// The folder's own stamp, and the monotonic times since when it has had it, and of the last whole scan.
  private var own: (stamp: FileStamp, sinceMs: Int)?
  private var wholeScanMs: Int?
  private var firstScanMs: Int?
  /// Whether the files that were there at the first scan are found, but for those that are still written.
  private(set) var isSettled = false

  /// Whether events tell of each change.
  var isWatched = false
  /// The monotonic time of the next scan.
  var scanAtMs: Int
  /// The fates of the files.
  var tally = FolderTally()
  /// The monotonic time from which a folder with nothing that can be taken is reported; nil once it was asked.
  var silentAtMs: Int?
  /// Changes since they were last taken.
  private var news = News()
  /// The folders in the folder, in the order of their names.
  private(set) var folders: [String] = []
  /// The files of names that are never looked at, and one of them.
  private(set) var ignored: (count: Int, example: String) = (0, "")

  /// Facts for the collector.
  struct News {
    /// Files to report.
    var left: [LeftFile] = []
    /// Names of which another version was found.
    var rewritten: [String] = []
    /// Names that are gone, of which several versions were found.
    var goneNames: [String] = []
    /// Versions that were replaced before they were seen.
    var lost: [(name: String, count: Int)] = []
  }

  /// - Parameter folder: the watched folder.
  init(_ folder: String, below: String, limits: Limits, nowMs: Int, silentAtMs: Int) {
    (self.below, self.limits, scanAtMs, self.silentAtMs) = (below, limits, nowMs, silentAtMs)
    path = below.isEmpty ? folder : folder + "/" + below
  }

  /// The files that were seen by the last scan.
  var count: Int { sights.count }

  /// Some of the files' names, from the watched folder, in their order.
  func examples(_ count: Int) -> [FolderFile] {
    sights.keys.sorted().prefix(count).compactMap { name in
      sights[name].map { FolderFile(name: full(name), stamp: $0.stamp) }
    }
  }

  /// A file that is not complete, and what it lacks; nil if there is none.
  var incomplete: LeftFile? {
    guard let name = sights.filter({ !$0.value.isFound }).keys.min(), let stamp = sights[name]?.stamp,
      let directory = try? Directory(opening: path), case let file = FolderFile(name: full(name), stamp: stamp),
      let fault = fault(of: file, named: name, in: directory)
    else { return nil }
    return LeftFile(name: full(name), reason: fault)
  }

  /// Looks at all files of the folder, or at none if the folder's own time says that there is no new one.
  ///
  /// - Parameters:
  ///   - nowMs: the monotonic time.
  ///   - isTaken: whether a batch has this file.
  /// - Returns: the files that are complete, each once.
  func scan(nowMs: Int, isTaken: (FolderFile) -> Bool) throws(DiskError) -> [FolderFile] {
    let directory = try Directory(opening: path)
    defer {
      let isSoon = hasPending || !isWatched
      let pauseMs = !changing.isEmpty && !isWatched ? Self.quickMs : isSoon ? Self.rescanMs : Self.watchedRescanMs
      scanAtMs = min(nowMs + pauseMs, silentAtMs.map { max($0, nowMs + 1) } ?? .max)
    }
    if isUnchanged(directory, nowMs) {
      let names = changing.sorted()
      return names.compactMap { look(at: $0, in: directory, nil, nowMs, isTaken) }
    }
    let all = try directory.entries()
    folders = all.filter { $0.kind == .directory && Self.isCandidate($0.name) && $0.name.utf8.elementsEqual($0.bytes) }
      .map(\.name)
    let files = all.filter { $0.kind == .file }
    let entries = files.filter { Self.isCandidate($0.name) }
    ignored = (files.count - entries.count, files.first { !Self.isCandidate($0.name) }?.name ?? "")
    var gone = sights
    var found: [FolderFile] = []
    hasPending = false
    for entry in entries {
      gone[entry.name] = nil
      guard entry.name.utf8.elementsEqual(entry.bytes) else {
        reportOnce(entry.name, "its name is not UTF-8", directory.state(of: entry).map(FileStamp.init), nowMs)
        continue
      }
      if let file = look(at: entry.name, in: directory, nil, nowMs, isTaken) { found.append(file) }
      if let sight = sights[entry.name], !sight.isFound, !sight.isReported, !changing.contains(entry.name) {
        hasPending = true
      }
    }
    for (name, sight) in gone {
      sights[name] = nil
      changing.remove(name)
      if sight.versions.isRewritten { news.goneNames.append(full(name)) }
    }
    let firstMs = firstScanMs ?? nowMs
    firstScanMs = firstMs
    // A second scan may come too early to tell which files are still written.
    isSettled = isSettled || !hasPending || nowMs - firstMs >= Self.rescanMs
    wholeScanMs = nowMs
    return found
  }

  /// Whether a look at the changing names is enough.
  private func isUnchanged(_ directory: Directory, _ nowMs: Int) -> Bool {
    var status = stat()
    guard fstat(directory.descriptor, &status) == 0 else { return false }
    let stamp = FileStamp(status)
    if own?.stamp != stamp { own = (stamp, nowMs) }
    guard let own, let wholeScanMs, nowMs - wholeScanMs < Self.watchedRescanMs, !hasPending else { return false }
    if !changing.isEmpty, nowMs - wholeScanMs < Self.rescanMs { return true }
    guard sights.isEmpty || sights.count > Self.few else { return false }
    return wholeScanMs - own.sinceMs >= Self.settlingMs
  }

  /// Looks at files that were closed or renamed.
  func look(
    at names: [String: FileChanges], nowMs: Int, isTaken: (FolderFile) -> Bool
  ) throws(DiskError) -> [FolderFile] {
    let names = names.filter { Self.isCandidate($0.key) }
    guard !names.isEmpty else { return [] }
    let directory = try Directory(opening: path)
    let found = names.sorted { $0.key < $1.key }.compactMap {
      look(at: $0.key, in: directory, $0.value, nowMs, isTaken)
    }
    if names.keys.contains(where: { sights[$0].map { !$0.isFound && !$0.isReported } ?? false }) {
      hasPending = true
      scanAtMs = min(scanAtMs, nowMs + Self.rescanMs)
    }
    return found
  }

  /// Forgets that a file was found: the next scan looks at it anew.
  func forget(_ file: FolderFile, nowMs: Int) {
    let name = lastComponent(of: file.name)
    guard sights[name]?.stamp == file.stamp else { return }
    sights[name]?.isFound = false
    sights[name]?.versions.forgetLast()
    hasPending = true
    scanAtMs = min(scanAtMs, nowMs + Self.rescanMs)
  }

  /// Notes that a copy of a file is in the collector's hands already.
  func note(found file: FolderFile) {
    var sight = Sight(stamp: file.stamp, sinceMs: 0, isFound: true)
    _ = sight.versions.add(found: nil)
    sights[lastComponent(of: file.name)] = sight
  }

  /// Hands out the news.
  func takeNews() -> News {
    defer { news = News() }
    return news
  }

  private func full(_ name: String) -> String { below.isEmpty ? name : below + "/" + name }

  /// Names of unfinished files and of what file managers leave behind are ignored.
  private static func isCandidate(_ name: String) -> Bool {
    BatchDirectory.isComplete(name) && !isRecorderJunk(name)
  }

  /// - Parameter changes: the events of the name; nil for a scan.
  private func look(
    at name: String, in directory: Directory, _ changes: FileChanges?, _ nowMs: Int, _ isTaken: (FolderFile) -> Bool
  ) -> FolderFile? {
    guard let stamp = directory.sourceStamp(of: name) else {
      if var sight = sights.removeValue(forKey: name), let changes {
        countLost(name, sight.versions.add(unseen: changes))
      }
      changing.remove(name)
      return nil
    }
    let file = FolderFile(name: full(name), stamp: stamp)
    let before = sights[name]
    let isSame = before?.stamp == stamp
    var sight = before.flatMap { isSame ? $0 : nil } ?? Sight(stamp: stamp, sinceMs: nowMs)
    if let before, !isSame {
      sight.versions = before.versions
      changing.insert(name)
    }
    if isSame, sight.isFound, nowMs - sight.sinceMs >= Self.watchedRescanMs { changing.remove(name) }
    defer { sights[name] = sight }
    let isNews = !sight.isFound && !sight.isReported && (changes != nil || isSame)
    guard isNews else {
      if let changes { countLost(name, sight.versions.add(unseen: changes)) }
      return nil
    }
    sight.isFound = isTaken(file)
    guard !sight.isFound else {
      tally.taken += 1
      return nil
    }
    guard let fault = fault(of: file, named: name, in: directory) else {
      sight.isFound = true
      countLost(name, sight.versions.add(found: changes))
      if sight.versions.isRewritten { news.rewritten.append(full(name)) }
      return file
    }
    if let changes { countLost(name, sight.versions.add(unseen: changes)) }
    if nowMs - sight.sinceMs >= Self.patienceMs {
      sight.isReported = true
      news.left.append(LeftFile(name: full(name), reason: fault))
    }
    return nil
  }

  private func countLost(_ name: String, _ count: Int) {
    if count > 0 { news.lost.append((full(name), count)) }
  }

  /// The reason why a file is not to be taken; nil for a complete image.
  private func fault(of file: FolderFile, named name: String, in directory: Directory) -> String? {
    guard file.stamp.size <= limits.fileBytes else {
      return "\(file.stamp.size) bytes, more than the limit of \(limits.fileBytes)"
    }
    do throws(DiskError) {
      guard let open = try OpenFile(name, in: directory) else { return "not a regular file" }
      return try CompleteImage.fault(in: open, path: path + "/" + name)
    } catch {
      return "\(error)"
    }
  }

  private func reportOnce(_ name: String, _ reason: String, _ stamp: FileStamp?, _ nowMs: Int) {
    guard let stamp, sights[name]?.stamp != stamp else { return }
    sights[name] = Sight(stamp: stamp, sinceMs: nowMs, isReported: true)
    news.left.append(LeftFile(name: full(name), reason: reason, advice: "rename it"))
  }
}
