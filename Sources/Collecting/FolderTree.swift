// The folders that a collector looks at: the watched one, and with `--recursive` all below it. New folders are found, and folders
// that vanish are let go. A folder below the watched one that cannot be read stops no other one.

import Batching
import FileSystem
import FrameBatches
import Glibc

final class FolderTree {
  /// Folders at most: the memory of a watch is a kilobyte of the kernel's.
  static let most = 20_000
  /// Folders above a picture at most.
  private static let deepest = 12
  /// Milliseconds until a folder that cannot be read is tried again.
  private static let pauseMs = 5_000

  private let top: String
  private let isRecursive: Bool
  /// A path without links that is never looked at: batches lie there.
  private let excluded: String
  private let limits: Limits
  private let silenceMs: Int
  private let watch: FolderWatch?
  private var scans: [String: FolderScan] = [:]
  /// Files that a copy exists of, by their folders.
  private var held: [String: [FolderFile]]
  /// Folders that could not be read.
  private var faulty: Set<String> = []
  /// The monotonic time of the next scan.
  private(set) var scanAtMs: Int
  /// Folders to report, with the reasons.
  private var left: [LeftFile] = []
  private var isFull = false

  init(
    _ top: String, _ rules: CollectRules, excluding excluded: String, held: [FolderFile], limits: Limits,
    watch: FolderWatch?, nowMs: Int
  ) {
    (self.top, self.excluded, self.limits, self.watch) = (top, excluded, limits, watch)
    (isRecursive, silenceMs, scanAtMs) = (rules.isRecursive, rules.silenceMs, nowMs)
    self.held = Dictionary(grouping: held) { Self.folder(of: $0) }
    add("", nowMs)
  }

  /// The path of a file's folder from the watched one.
  static func folder(of file: FolderFile) -> String {
    file.name.contains("/") ? DurableFile.parentDirectory(of: file.name) : ""
  }

  /// The folders with a scan.
  var all: some Collection<FolderScan> { scans.values }

  /// The folders of which files that are there are not found yet.
  var unsettled: [String] {
    scans.values.filter { !$0.isSettled && !faulty.contains($0.below) }.map(\.below)
  }

  subscript(below: String) -> FolderScan? { scans[below] }

  /// Looks at the files of events, and at whole folders that are due.
  ///
  /// - Parameters:
  ///   - isWhole: whether all folders are due.
  ///   - isTaken: whether a batch has this file.
  ///   - looked: gets each folder that was looked at, and its files that are complete.
  /// - Throws: ``DiskError`` if the watched folder itself cannot be read.
  func look(
    _ changes: FolderChanges, isWhole: Bool, nowMs: Int, isTaken: (FolderFile) -> Bool,
    _ looked: (FolderScan, [FolderFile]) -> Void
  ) throws(DiskError) {
    // Another folder may have the path now.
    if let watch { scans[""]?.isWatched = watch.watch("") }
    for (below, files) in changes.files {
      guard let scan = scans[below] else { continue }
      let found = try reading(scan, nowMs) { () throws(DiskError) in
        try scan.look(at: files, nowMs: nowMs, isTaken: isTaken)
      }
      looked(scan, found ?? [])
      scanAtMs = min(scanAtMs, scan.scanAtMs)
    }
    for below in changes.folders where isRecursive {
      for place in [below, Self.parent(of: below)] { scans[place]?.scanAtMs = nowMs }
      scanAtMs = nowMs
    }
    guard isWhole || changes.areIncomplete || nowMs >= scanAtMs else { return }
    var due = scans.values.filter { isWhole || changes.areIncomplete || nowMs >= $0.scanAtMs }[...]
    while let scan = due.popFirst() {
      guard scans[scan.below] === scan else { continue }
      if let watch, !scan.isWatched || !isWhole { scan.isWatched = watch.watch(scan.below) }
      let before = scan.folders
      let found = try reading(scan, nowMs) { () throws(DiskError) in try scan.scan(nowMs: nowMs, isTaken: isTaken) }
      guard let found else { continue }
      looked(scan, found)
      guard isRecursive, scan.folders != before else { continue }
      let folders = Set(scan.folders)
      for name in before where !folders.contains(name) { letGo(Self.path(of: name, in: scan.below)) }
      for name in scan.folders.sorted() {
        if let new = add(Self.path(of: name, in: scan.below), nowMs) { due.append(new) }
      }
    }
    scanAtMs = scans.values.map(\.scanAtMs).min() ?? nowMs
  }

  /// Waits at least so long before the next scan of any folder.
  func postpone(untilMs: Int) { scanAtMs = max(scanAtMs, untilMs) }

  /// A file has changed since it was found.
  func forget(_ file: FolderFile, nowMs: Int) {
    guard let scan = scans[Self.folder(of: file)] else { return }
    scan.forget(file, nowMs: nowMs)
    scanAtMs = min(scanAtMs, scan.scanAtMs)
  }

  /// Hands out the folders to report.
  func takeLeft() -> [LeftFile] {
    defer { left = [] }
    return left
  }

  /// Runs a body that reads a folder.
  ///
  /// - Returns: nil if the folder is gone, or cannot be read.
  private func reading(
    _ scan: FolderScan, _ nowMs: Int, _ body: () throws(DiskError) -> [FolderFile]
  ) throws(DiskError) -> [FolderFile]? {
    do throws(DiskError) {
      let found = try body()
      faulty.remove(scan.below)
      return found
    } catch {
      if scan.below.isEmpty { throw error }
      if [ENOENT, ENOTDIR].contains(error.code) {
        letGo(scan.below)
      } else {
        if faulty.insert(scan.below).inserted {
          left.append(LeftFile(name: scan.below, reason: "\(error); the other folders go on"))
        }
        scan.scanAtMs = nowMs + Self.pauseMs
      }
      return nil
    }
  }

  /// - Returns: nil for a folder that has a scan already, or gets none.
  @discardableResult
  private func add(_ below: String, _ nowMs: Int) -> FolderScan? {
    let path = below.isEmpty ? top : top + "/" + below
    guard scans[below] == nil, path != excluded, below.count(where: { $0 == "/" }) < Self.deepest else { return nil }
    guard scans.count < Self.most else {
      if !isFull {
        left.append(
          LeftFile(
            name: below, reason: "one of more than \(Self.most) folders",
            advice: "remove folders of old days, or collect in two parts"))
      }
      isFull = true
      return nil
    }
    let scan = FolderScan(top, below: below, limits: limits, nowMs: nowMs, silentAtMs: nowMs + silenceMs)
    for file in held.removeValue(forKey: below) ?? [] { scan.note(found: file) }
    scans[below] = scan
    return scan
  }

  private func letGo(_ below: String) {
    let inside = below + "/"
    for gone in scans.keys where gone == below || gone.hasPrefix(inside) {
      scans[gone] = nil
      faulty.remove(gone)
      watch?.forget(gone)
    }
  }

  private static func parent(of below: String) -> String {
    below.contains("/") ? DurableFile.parentDirectory(of: below) : ""
  }

  private static func path(of name: String, in below: String) -> String { below.isEmpty ? name : below + "/" + name }
}
