import Foundation
import JSON
import TestSupport

@testable import Batching
@testable import Collecting
@testable import FileSystem
@testable import FrameBatches
@testable import WorkQueues

/// A folder of screenshots, a spool, and a collector with a clock that the test sets.
final class CollectedFolder {
  let scratch: ScratchDirectory
  let folder: String
  let spool: Spool
  var rules = CollectRules()
  var options = InputOptions()
  var nowMs = 0
  private(set) var events: [Collector.Event] = []
  private(set) var collector: Collector?

  /// - Parameter spool: its path in the scratch directory.
  init(spool path: String = "spool") throws {
    scratch = try ScratchDirectory()
    folder = DurableFile.resolved(try scratch.directory("shots"))
    spool = try Spool(creating: scratch.path(path))
    rules.folder = "shots"
  }

  /// Returns bytes with the start and end markers of a JPEG, which are all that the collector checks.
  static func image(_ text: String) -> [UInt8] { [0xFF, 0xD8, 0xFF, 0xE0] + Array(text.utf8) + [0xFF, 0xD9] }

  func add(_ name: String, _ bytes: [UInt8]? = nil) throws {
    if name.contains("/") { _ = try scratch.directory("shots/" + DurableFile.parentDirectory(of: name)) }
    try scratch.file("shots/" + name, bytes ?? Self.image(name))
  }

  /// Renames a new file to a name that may be taken, as recorders do.
  func replace(_ name: String, with text: String, capturedMs: Int64) throws {
    try add(".new", Self.image(text))
    let time = timespec(tv_sec: Int(capturedMs / 1_000), tv_nsec: Int(capturedMs % 1_000) * 1_000_000)
    guard utimensat(AT_FDCWD, folder + "/.new", [time, time], 0) == 0 else { throw DiskError("utimensat", name) }
    if name.contains("/") { _ = try scratch.directory("shots/" + DurableFile.parentDirectory(of: name)) }
    guard rename(folder + "/.new", folder + "/" + name) == 0 else { throw DiskError("rename", name) }
  }

  /// Takes a step with the events of one name, some milliseconds later.
  func see(_ name: String, closed: Int = 0, moved: Int = 0) throws {
    nowMs += 20
    try collector?.step(Self.changes([(name, FileChanges(closed: closed, moved: moved))]))
  }

  func add(captures: Int64...) throws { for timeMs in captures { try add("\(timeMs).jpg") } }

  /// Starts a run. The previous run ends without cleanup, as after a kill.
  func start() throws {
    collector = nil
    collector = try Collector(
      folder, into: spool, rules, options: options, clock: { [unowned self] in nowMs },
      report: { [unowned self] in events.append($0) })
  }

  /// Advances the clock, with a scan every two seconds.
  func pass(seconds: Int) throws {
    if collector == nil { try start() }
    try collector?.step()
    for _ in 0..<(seconds + 1) / 2 {
      nowMs += 2_000
      try collector?.step()
    }
  }

  /// Returns the events of files, by their paths from the watched folder.
  static func changes(_ files: [(name: String, FileChanges)]) -> FolderChanges {
    var changes = FolderChanges()
    for (name, change) in files {
      let below = FolderTree.folder(of: FolderFile(name: name, stamp: FileStamp(inode: 0, size: 0, modified: 0)))
      changes.files[below, default: [:]][lastComponent(of: name)] = change
    }
    return changes
  }

  func stop() throws { try collector?.stop() }

  struct Made: Equatable {
    let session: String
    let times: [Int64]
    let endMs: Int64
    var isFinal = false
    /// Whether the end is a guess.
    var isOpen = false
  }

  /// The frames' files in the spool, each with its number of copies.
  func contents() throws -> [[UInt8]: Int] {
    var contents: [[UInt8]: Int] = [:]
    for name in try names(in: spool.incoming) {
      let batch = spool.incoming + "/" + name
      for file in try names(in: batch) where file != "batch.json" {
        contents[Array(try Data(contentsOf: URL(fileURLWithPath: batch + "/" + file))), default: 0] += 1
      }
    }
    return contents
  }

  /// The batches in the spool as a worker reads them, ordered by capture time.
  func batches() throws -> [Made] {
    try names(in: spool.incoming).map { name in
      let sessions = try BatchSessions(reading: spool.incoming + "/" + name)
      let batch = sessions.readers[0].batch
      guard sessions.readers.count == 1, batch.refused.isEmpty, batch.warnings.isEmpty else {
        throw Tool.Failure("\(name): \(batch.refused) \(batch.warnings)")
      }
      return Made(
        session: batch.session.description, times: batch.frames.map(\.timeMs), endMs: batch.endMs,
        isFinal: batch.isFinal, isOpen: batch.isEndOpen)
    }.sorted { ($0.session, $0.times[0]) < ($1.session, $1.times[0]) }
  }

  /// The names and reasons of files that the collector reported.
  var left: [String] {
    events.compactMap { event in
      switch event {
      case .left(let file), .withoutTime(let file, _): "\(file.name): \(file.reason)"
      default: nil
      }
    }
  }

  /// The folders that the collector reported.
  var leftFolders: [LeftFile] { events.compactMap { if case .leftFolder(let folder) = $0 { folder } else { nil } } }

  /// The folders of which nothing was taken.
  var silent: [SilentFolder] { events.compactMap { if case .silent(let folder) = $0 { folder } else { nil } } }

  /// The names that are written in turn.
  var inTurn: [[String]] { events.compactMap { if case .inTurn(let names) = $0 { names } else { nil } } }

  /// The versions that were lost, by their names.
  var lost: [String: Int] {
    events.reduce(into: [:]) { if case .lost(let name, let count) = $1 { $0[name, default: 0] += count } }
  }
}
