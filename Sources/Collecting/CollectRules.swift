import FileSystem
import FrameBatches

/// The rules by which frames become batches.
package struct CollectRules: Sendable {
  /// Frames of a batch, as long as no more of them have the same capture time.
  static let batchFrames = 60
  /// Frames of a batch whatever their times are.
  static let mostFrames = 1_000

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

  package init() {}

  /// The beginning of session names for a folder: its name, with a dash for each character that a session may not have.
  package static func sessionBase(ofFolder path: String) -> String {
    let name = lastComponent(of: path).prefix(80).map { SessionID("x\($0)") == nil ? "-" : $0 }
    let base = path == "/" ? "" : String(name).drop { $0 == "." }
    return base.isEmpty ? "screenshots" : String(base)
  }
}

/// The names of the sessions of one folder.
struct SessionNaming {
  /// The session of a folder without groups; nil if each pause begins another one.
  private let base: String?
  /// The beginning of the names of such sessions.
  private let beginning: String
  private let period: SessionPeriod?
  private let isTop: Bool

  init(_ folder: SessionFolder, _ rules: CollectRules) {
    (beginning, period, isTop) = (rules.folder, rules.period, folder.isTop)
    base =
      folder.isTop ? rules.session ?? (rules.period == nil ? nil : rules.folder) : folder.session(below: rules.session)
  }

  /// Whether a pause ends a session. A folder's session goes on, and so does one that a clock ends.
  var endsAfterPause: Bool { isTop && period == nil }

  /// Whether the name of a group's session does not depend on its first capture.
  func isFixed(_ group: CaptureGroup) -> Bool {
    if case .session = group { return true }
    return base != nil
  }

  /// The group that a session of this folder can have. Two folders may have pictures of one camera's name.
  func group(_ group: CaptureGroup) -> CaptureGroup {
    if case .session(let name) = group, !isTop { return .key(name) }
    return group
  }

  /// The name of the session that begins with a capture.
  func name(_ group: CaptureGroup, at timeMs: Int64) -> String {
    guard let period else { return group.session(base ?? "\(beginning)-\(timeMs)") }
    let label = period.label(at: timeMs)
    if case .session(let name) = group { return "\(name)-\(label)" }
    return group.session("\(base ?? beginning)-\(label)")
  }

  /// Whether a session of an earlier run goes on: that run may have been given another name.
  func mayContinue(_ session: CollectedSession, of group: CaptureGroup) -> Bool {
    isFixed(group)
      ? session.name == name(group, at: session.lastMs) : session.name.hasPrefix(beginning + "-")
  }

  /// Whether a later capture is in another period.
  func isOver(_ beforeMs: Int64, at afterMs: Int64) -> Bool {
    period.map { $0.number(at: beforeMs) != $0.number(at: afterMs) } ?? false
  }
}
