import FileSystem
import FrameBatches

/// The remedy for a path that is no session: names sessions that are there.
package enum SessionAdvice {
  /// Maximum number of sessions in a message.
  private static let maximumNames = 5

  /// Returns the advice for a path that should be `OUTPUT/SESSION`.
  package static func naming(insteadOf path: String) -> String {
    existing(insteadOf: path) ?? "name a directory OUTPUT/SESSION"
  }

  /// Returns the advice for a path that should be `OUTPUT/SESSION`; nil if no session is near.
  package static func existing(insteadOf path: String) -> String? {
    var path = path
    while path.hasSuffix("/") && path.utf8.count > 1 { path.removeLast() }
    let inside = sessions(in: path)
    if !inside.isEmpty { return "name a directory OUTPUT/SESSION; it holds \(list(inside.map { path + "/" + $0 }))" }
    let output = DurableFile.parentDirectory(of: path)
    let others = sessions(in: output).filter { $0 != lastComponent(of: path) }
    let alike = alike(lastComponent(of: path), among: others)
    let shown = alike.isEmpty && others.count <= maximumNames ? others : alike
    let prefix = path.contains("/") ? (output == "/" ? "/" : output + "/") : ""
    return shown.isEmpty ? nil : "name a session that is there: \(list(shown.map { prefix + $0 }))"
  }

  /// Returns the sessions in an output that a name may stand for, as text; nil if there are none. A form with several screens has a
  /// session for each: `login1.m1`, `login1.m2`.
  package static func alike(_ session: SessionID, in output: String) -> String? {
    let names = alike(session.description, among: sessions(in: output)).filter { $0 != session.description }
    return names.isEmpty ? nil : list(names)
  }

  private static func alike(_ name: String, among sessions: [String]) -> [String] {
    let stem = name.prefix { $0 != "@" }
    return sessions.filter { $0 == stem || $0.hasPrefix(stem + ".") || $0.lowercased() == stem.lowercased() }
  }

  /// Returns the names of the published sessions in a directory, sorted.
  private static func sessions(in output: String) -> [String] {
    guard let entries = try? Directory(opening: output).entries() else { return [] }
    return entries.filter { $0.kind != .file && SessionID($0.name) != nil }.map(\.name).sorted().filter {
      DurableFile.exists("\(output)/\($0)/\(IndexText.jsonFile)")
    }
  }

  private static func list(_ names: [String]) -> String {
    let shown = names.prefix(maximumNames)
    if names.count > shown.count {
      return shown.joined(separator: ", ") + ", or one of \(names.count - shown.count) more"
    }
    guard let last = shown.last, shown.count > 1 else { return names.first ?? "" }
    return shown.dropLast().joined(separator: ", ") + " or \(last)"
  }
}
