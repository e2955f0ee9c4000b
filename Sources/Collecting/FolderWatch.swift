import CLinux
import FileSystem
import Glibc

/// The changes of watched folders since the last wait.
package struct FolderChanges {
  /// The names of files that were closed or renamed, by the folder's path from the watched one.
  package var files: [String: [String: FileChanges]] = [:]
  /// Folders that have another set of folders now, or are gone.
  package var folders: Set<String> = []
  /// Whether some events were lost: the system's queue was full.
  package var areIncomplete = false

  package init(files: [String: [String: FileChanges]] = [:]) { self.files = files }

  package var isEmpty: Bool { files.isEmpty && folders.isEmpty && !areIncomplete }

  /// Names of a folder that are kept while nothing can be collected.
  private static let mostNames = 10_000

  /// Adds later changes.
  package mutating func append(_ later: FolderChanges) {
    for (below, names) in later.files {
      files[below, default: [:]].merge(names) { FileChanges(closed: $0.closed + $1.closed, moved: $0.moved + $1.moved) }
      if files[below]?.count ?? 0 > Self.mostNames { (files[below], areIncomplete) = (nil, true) }
    }
    folders.formUnion(later.folders)
    areIncomplete = areIncomplete || later.areIncomplete
  }
}

/// Waits for files that are closed or renamed in folders (inotify(7)). Network file systems tell nothing of other hosts' files,
/// and the system may have no watches left: then a wait ends when its time is over.
package final class FolderWatch {
  /// The reason why a folder is not watched, and the remedy.
  package struct Shortage: Sendable {
    package let setting: String
    package let count: Int
  }

  /// Writes are events only to keep two closes apart: the system joins equal events that follow each other.
  private static let files = UInt32(IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_MODIFY)
  /// The folder itself, and new folders in it.
  private static let folders = UInt32(IN_CREATE | IN_DELETE_SELF | IN_MOVE_SELF)
  /// Milliseconds for which further events are awaited: those of many folders come one by one.
  private static let gatherMs: UInt32 = 20

  private let top: String
  private let mask: UInt32
  private let events: Int32
  private let wakeup: Int32
  private var paths: [Int32: String] = [:]
  private var watches: [String: Int32] = [:]
  private var changes = FolderChanges()
  /// The setting of the system that is used up; nil if no folder lacks a watch for it.
  package private(set) var shortage: Shortage?

  /// - Parameters:
  ///   - top: the watched folder.
  ///   - isRecursive: whether new folders are events, too.
  package init(_ top: String, isRecursive: Bool) throws(DiskError) {
    self.top = top
    mask = Self.files | UInt32(IN_ONLYDIR) | (isRecursive ? Self.folders : 0)
    wakeup = clinux_wake_descriptor()
    guard wakeup >= 0 else { throw DiskError("eventfd", top) }
    events = inotify_init1(Int32(IN_CLOEXEC | IN_NONBLOCK))
    if events < 0 && errno == EMFILE { note(shortageOf: "max_user_instances") }
  }

  deinit {
    close(wakeup)
    if events >= 0 { close(events) }
  }

  /// Watches the folder that has the path now; it may be another one than before.
  ///
  /// - Parameter below: the path from the watched folder; empty for that one.
  /// - Returns: whether events tell of each change.
  func watch(_ below: String) -> Bool {
    guard events >= 0 else { return false }
    let path = below.isEmpty ? top : top + "/" + below
    let folder = inotify_add_watch(events, path, mask)
    guard folder >= 0 else {
      if errno == ENOSPC { note(shortageOf: "max_user_watches") }
      forget(below)
      return false
    }
    if let before = watches[below], before != folder { forget(below) }
    // Two paths of one folder: events come with one of them.
    guard paths[folder].map({ $0 == below }) ?? true else { return false }
    (paths[folder], watches[below]) = (below, folder)
    return Self.tellsAll(path)
  }

  /// Ends the watch of a folder.
  func forget(_ below: String) {
    guard let folder = watches.removeValue(forKey: below) else { return }
    paths[folder] = nil
    inotify_rm_watch(events, folder)
  }

  /// Whether each change of a folder is made by this host's kernel.
  private static func tellsAll(_ path: String) -> Bool {
    guard let directory = try? Directory(opening: path) else { return false }
    return clinux_hides_changes(directory.descriptor) == 0
  }

  private func note(shortageOf name: String) {
    let setting = "fs.inotify." + name
    let text = try? DurableFile.contents(of: "/proc/sys/" + setting.replacing(".", with: "/"), limit: 64)
    let digits = String(decoding: text ?? [], as: UTF8.self).prefix { $0.isNumber }
    shortage = Shortage(setting: setting, count: Int(digits) ?? 0)
  }

  /// Ends the wait; for any thread.
  package var wake: @Sendable () -> Void { { [wakeup] in clinux_wake(wakeup) } }

  /// Waits for events, or for ``wake``.
  package func wait(ms: Int) -> FolderChanges {
    let untilMs = MonotonicClock.milliseconds() + min(max(0, ms), 3_600_000)
    repeat {
      var polled = [wakeup, events].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      poll(&polled, 2, Int32(clamping: max(0, untilMs - MonotonicClock.milliseconds())))
      var count: eventfd_t = 0
      if polled[0].revents != 0 { eventfd_read(wakeup, &count) }
      guard events >= 0, polled[1].revents != 0 else { break }
      usleep(1_000 * Self.gatherMs)
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while case let count = read(events, &buffer, buffer.count), count > 0 {
        FolderEvent.all(in: buffer[..<count]).forEach(add)
      }
      if polled[0].revents != 0 { break }
    } while changes.isEmpty && MonotonicClock.milliseconds() < untilMs
    return take()
  }

  private func take() -> FolderChanges {
    defer { changes = FolderChanges() }
    return changes
  }

  private func add(_ event: FolderEvent) {
    if event.has(IN_Q_OVERFLOW) { changes.areIncomplete = true }
    guard let below = paths[event.folder] else { return }
    if event.has(IN_IGNORED) {
      paths[event.folder] = nil
      if watches[below] == event.folder { watches[below] = nil }
    }
    if event.has(IN_IGNORED) || event.has(IN_DELETE_SELF) || event.has(IN_MOVE_SELF) {
      changes.folders.insert(below)
      return
    }
    if event.isOfFolder {
      changes.folders.insert(below)
      return
    }
    guard let name = event.name else { return }
    if event.has(IN_MOVED_TO) { changes.files[below, default: [:]][name, default: FileChanges()].moved += 1 }
    if event.has(IN_CLOSE_WRITE) { changes.files[below, default: [:]][name, default: FileChanges()].closed += 1 }
    // The file has another name now.
    if event.has(IN_MOVED_FROM) { changes.files[below]?[name] = nil }
  }
}

/// A `struct inotify_event`: watch, mask, cookie and length of the name, 4 bytes each, and the name.
struct FolderEvent: Equatable {
  let folder: Int32
  private let mask: UInt32
  /// nil for the folder itself, and for a name that is not UTF-8.
  let name: String?

  /// Whether the name is that of a folder.
  var isOfFolder: Bool { mask & UInt32(IN_ISDIR) != 0 }

  func has(_ flag: Int32) -> Bool { mask & UInt32(flag) != 0 }

  /// Reads a run of events.
  static func all(in bytes: ArraySlice<UInt8>) -> [FolderEvent] {
    var events: [FolderEvent] = []
    var rest = bytes
    while rest.count >= 16 {
      func number(at offset: Int) -> UInt32 {
        rest.dropFirst(offset).prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
      }
      let length = Int(number(at: 12))
      let name = rest.dropFirst(16).prefix(length).prefix { $0 != 0 }
      events.append(
        FolderEvent(
          folder: Int32(bitPattern: number(at: 0)), mask: number(at: 4),
          name: name.isEmpty ? nil : String(validating: name, as: UTF8.self)))
      rest = rest.dropFirst(16 + length)
    }
    return events
  }
}
