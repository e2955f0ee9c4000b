import FileSystem
import Glibc
import JSON
import Sessions

/// Something that was removed, or would be.
package struct Pruned: Sendable {
  package let path: String
  /// A description for a person.
  package let what: String
  /// The size of all files in it.
  package let bytes: Int
  /// The removed segments of a session that goes on.
  var segments: RemovedSegments?

  /// One line of JSON.
  package var json: String {
    var members: [String: JSONValue] = ["path": .string(path), "what": .string(what), "bytes": .number(bytes)]
    if let segments {
      members["segments"] = .number(segments.segments)
      members["untilMs"] = .number(segments.untilMs)
    }
    return JSONValue.object(members).line
  }
}

/// One run of `prune`. It removes what it finds, or only reports it; a failure stops no other removal.
final class PruneRun {
  let pruning: Pruning
  let monitor: HeartbeatMonitor
  private(set) var pruned: [Pruned] = []
  /// Paths in use.
  var skipped: [String] = []
  /// Paths of sessions that go once a worker has announced their ends.
  var ending: [String] = []
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

  /// Adds segments that were removed, or would be.
  func add(_ removed: RemovedSegments) {
    pruned.append(
      Pruned(path: output + "/\(removed.session)", what: removed.what, bytes: removed.bytes, segments: removed))
  }

  /// Removes a file, or a directory with everything in it.
  func remove(_ path: String, _ what: String) { remove(path, what) { try DurableFile.removeTree(path) } }

  func remove(_ path: String, _ what: String, by removal: () throws -> Void) {
    attempt {
      let bytes = FileCount(of: path).bytes
      if !pruning.isDryRun { try removal() }
      pruned.append(Pruned(path: path, what: what, bytes: bytes))
    }
  }
}
