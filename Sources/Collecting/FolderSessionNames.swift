import Batching
import FrameBatches

/// The names of the sessions of one group of pictures in one folder: a monitor, a camera, or all of them.
struct FolderSessionNames: SessionNames {
  private let group: CaptureGroup
  /// The session of a folder without groups; nil if each pause begins another one.
  private let base: String?
  /// The beginning of the names of such sessions.
  private let beginning: String
  private let period: SessionPeriod?
  private let isTop: Bool

  init(_ folder: SessionFolder, _ group: CaptureGroup, _ rules: CollectRules) {
    (beginning, period, isTop) = (rules.folder, rules.period, folder.isTop)
    base =
      folder.isTop ? rules.session ?? (rules.period == nil ? nil : rules.folder) : folder.session(below: rules.session)
    // Two folders may have pictures of one camera's name.
    if case .session(let name) = group, !isTop { self.group = .key(name) } else { self.group = group }
  }

  /// The key of the stream: before a slash the folder, if it is not the watched one.
  func stream(of folder: SessionFolder) -> String { isTop ? group.text : folder.path + "/" + group.text }

  /// The folder of a stream.
  static func folder(ofStream key: String) -> SessionFolder {
    SessionFolder(of: key.lastIndex(of: "/").map { String(key[..<$0]) } ?? "")
  }

  var areFixed: Bool {
    if case .session = group { return true }
    return base != nil
  }

  /// A folder's session goes on, and so does one that a clock ends.
  var endAtPause: Bool { isTop && period == nil }

  func name(at timeMs: Int64) -> String {
    guard let period else { return group.session(base ?? "\(beginning)-\(timeMs)") }
    let label = period.label(at: timeMs)
    if case .session(let name) = group { return "\(name)-\(label)" }
    return group.session("\(base ?? beginning)-\(label)")
  }

  func mayContinue(_ session: OpenSession) -> Bool {
    areFixed ? session.name == name(at: session.lastMs) : session.name.hasPrefix(beginning + "-")
  }

  func isOver(_ beforeMs: Int64, at afterMs: Int64) -> Bool {
    period.map { $0.number(at: beforeMs) != $0.number(at: afterMs) } ?? false
  }
}
