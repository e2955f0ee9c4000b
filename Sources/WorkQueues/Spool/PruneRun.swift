import FileSystem
import Glibc
import JSON

/// Something that was removed, or would be.
package struct Pruned: Sendable {
  package let path: String
  /// A description for a person.
  package let what: String
  /// The size of all files in it.
  package let bytes: Int

  /// One line of JSON.
  package var json: String {
    JSONValue.object(["path": .string(path), "what": .string(what), "bytes": .number(bytes)]).line
  }
}

/// One run of `prune`. It removes what it finds, or only reports it; a failure stops no other removal.
final class PruneRun {
  let pruning: Pruning
  let monitor: HeartbeatMonitor
  private(set) var pruned: [Pruned] = []
  /// Paths in use.
  var skipped: [String] = []
  private(set) var failures: [any Error] = []

  init(_ pruning: Pruning, _ monitor: HeartbeatMonitor) {
    self.pruning = pruning
    self.monitor = monitor
  }

  var spool: Spool { pruning.spool }
  var output: String { pruning.output }

  func attempt(_ body: () throws -> Void) {
    do { try body() } catch { failures.append(error) }
  }

  /// Removes a file, or a directory with everything in it.
  func remove(_ path: String, _ what: String) { remove(path, what) { try DurableFile.removeTree(path) } }

  func remove(_ path: String, _ what: String, by removal: () throws -> Void) {
    attempt {
      let bytes = Self.bytes(at: path)
      if !pruning.isDryRun { try removal() }
      pruned.append(Pruned(path: path, what: what, bytes: bytes))
    }
  }

  /// The size of a file, or of all files in a directory. Unreadable files and links count zero; no link is followed.
  private static func bytes(at path: String) -> Int {
    if let directory = try? Directory(opening: path, followingLinks: false) { return directory.fileBytes() }
    return DurableFile.isFile(path) ? (try? DurableFile.size(of: path)) ?? 0 : 0
  }
}

extension Directory {
  /// - Parameter depth: the levels that count; no producer nests deeper.
  fileprivate func fileBytes(depth: Int = 64) -> Int {
    let entries = (try? self.entries()) ?? []
    return entries.reduce(0) { sum, entry in
      switch entry.kind {
      case .file: sum + (state(of: entry).map { Int($0.st_size) } ?? 0)
      case .directory where depth > 0: sum + ((try? Directory(entry, in: self))?.fileBytes(depth: depth - 1) ?? 0)
      default: sum
      }
    }
  }
}
