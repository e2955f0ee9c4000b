import JSON

/// A part of the session list as JSON (`session-list/1`).
package struct SessionListPage: Sendable {
  package let json: [UInt8]
  /// The number of the last change of the list, with a name of the process.
  package let revision: String

  /// - Parameter members: beside the format and the sessions.
  init(_ entries: [ListedSessions.Entry], _ revision: String, _ members: [String: JSONValue]) {
    self.revision = revision
    let head = JSONValue.object(members).setting(["format": .string("session-list/1")]).bytes().dropLast()
    var text = Array(head) + Array(",\"sessions\":[".utf8)
    text.reserveCapacity(text.count + entries.reduce(8) { $0 + $1.json.count + 1 })
    for (number, entry) in entries.enumerated() {
      if number > 0 { text.append(UInt8(ascii: ",")) }
      text += entry.json
    }
    text += Array("]}\n".utf8)
    json = text
  }
}
