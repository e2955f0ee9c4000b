import Batching
import FileSystem
import FrameBatches

/// The rules by which the pictures of folders become sessions and batches.
package struct CollectRules: Sendable {
  /// Milliseconds between batches.
  package var everyMs = 5_000
  /// Milliseconds without a frame after which a session ends.
  package var idleMs = 60_000
  /// The session of all batches of the watched folder; nil for a new one after each pause.
  package var session: String?
  /// The beginning of new sessions' names.
  package var folder = "screenshots"
  package var keepsSources = false
  /// Whether each folder below the watched one is a session.
  package var isRecursive = false
  /// The time of one session's pictures; nil for sessions that no clock ends.
  package var period: SessionPeriod?
  /// Pictures from before this capture are left, in unix milliseconds.
  package var sinceMs: Int64?
  /// Milliseconds after which a folder with nothing that can be taken is reported.
  package var silenceMs = 60_000
  /// The free space that it leaves on the disk of the spool.
  package var freeSpace = FreeSpace()

  package init() {}

  /// The rules of its batcher.
  func ofBatches(_ limits: Limits, _ options: InputOptions) -> BatchRules {
    var rules = BatchRules()
    (rules.everyMs, rules.idleMs) = (everyMs, idleMs)
    (rules.pauseMs, rules.intervalMs) = (limits.pauseMs, options.intervalMs)
    return rules
  }

  /// The beginning of session names for a folder: its name, with a dash for each character that a session may not have.
  package static func sessionBase(ofFolder path: String) -> String {
    let name = lastComponent(of: path).prefix(80).map { SessionID("x\($0)") == nil ? "-" : $0 }
    let base = path == "/" ? "" : String(name).drop { $0 == "." }
    return base.isEmpty ? "screenshots" : String(base)
  }
}
