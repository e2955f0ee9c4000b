// One run of `prune`: what is found is removed, or only said, and what goes wrong with one thing holds up no other.

import FileSystem
import Glibc
import JSON

/// Something that was removed, or would be.
package struct Pruned: Sendable {
  package let path: String
  /// A description for a person.
  package let what: String
  /// Of all files in it.
  package let bytes: Int

  /// One line of JSON.
  package var json: String {
    JSONValue.object(["path": .string(path), "what": .string(what), "bytes": .number(bytes)]).line
  }
}

package final class PruneRun {
  package let isDryRun: Bool
  package let witness: HeartbeatMonitor
  package private(set) var pruned: [Pruned] = []
  /// Paths that are in use and were left alone.
  package private(set) var skipped: [String] = []
  package private(set) var failures: [any Error] = []

  init(isDryRun: Bool, witness: HeartbeatMonitor) {
    self.isDryRun = isDryRun
    self.witness = witness
  }

  package func attempt(_ body: () throws -> Void) {
    do { try body() } catch { failures.append(error) }
  }

  func skip(_ path: String) { skipped.append(path) }

  /// - Parameter removal: how it goes, where that is not simply to remove it.
  package func remove(_ path: String, _ what: String, by removal: (() throws -> Void)? = nil) {
    attempt {
      let bytes = Self.bytes(at: path)
      if !isDryRun { try removal?() ?? DurableFile.removeTree(path) }
      pruned.append(Pruned(path: path, what: what, bytes: bytes))
    }
  }

  /// Of a file, or of all files in a directory; links count nothing and are never followed. Files that cannot be read count zero
  /// bytes.
  private static func bytes(at path: String) -> Int {
    if let directory = try? Directory(opening: path, followingLinks: false) { return directory.fileBytes() }
    return DurableFile.isFile(path) ? (try? DurableFile.size(of: path)) ?? 0 : 0
  }
}

extension Directory {
  /// Of all files in here, down to a depth at which nobody keeps any.
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
