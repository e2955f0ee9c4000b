import Encoding
import FileSystem
import FrameBatches

/// `session.json` and `session.ffconcat`. They are one view: the list of the first tells where the second ends, and both have to be
/// of the same moment to be extended.
package struct IndexView: SessionView {
  package static let jsonFile = "session.json"
  package static let scriptFile = "session.ffconcat"
  /// Maximum size of a view's file in bytes: some 300 000 segments.
  package static let maximumBytes = 64 << 20

  /// Every session has it.
  var kind: ViewKinds { [] }
  var entryPoints: [String] { names(of: []) }

  func isPresent(in session: SessionDirectory, _ entries: [Directory.Entry]) -> Bool {
    entries.contains { $0.name == Self.jsonFile }
  }

  func extend(_ update: ViewUpdate, by new: NewSegments) throws -> ViewOutcome? {
    try write(new.index, update)
    return ViewOutcome()
  }

  func rebuild(
    _ update: ViewUpdate, from segments: [PublishedSegment], _ entries: [Directory.Entry]
  ) throws -> ViewOutcome {
    for (name, bytes) in files(of: segments, behind: 0, in: update.directory.session, among: entries.map(\.name)) {
      try update.write(name, bytes)
    }
    try Directory(opening: update.directory.path).sync()
    return ViewOutcome()
  }

  func removeFirst(_ update: ViewUpdate, _ removal: FirstSegments) throws -> Bool {
    guard let json = try update.contents(of: Self.jsonFile), let script = try update.contents(of: Self.scriptFile),
      let text = IndexText.removing(
        removal.removed.map(\.entry), before: removal.first.entry, last: removal.last.entry, json: json,
        script: script, of: update.directory.session)
    else { return false }
    try write(text, update)
    return true
  }

  /// Returns the size of all videos and whether the session is complete, from the beginning of `session.json`; nil if it is no such
  /// file of ours.
  static func head(of json: [UInt8]) -> (bytes: Int, isComplete: Bool)? {
    let words = String(decoding: json.prefix(64), as: UTF8.self).split { "{\":,".contains($0) }
    guard words.count > 3, words[0] == "bytes", let bytes = Int(words[1]), bytes >= 0, words[2] == "complete" else {
      return nil
    }
    return (bytes, words[3] == "true")
  }

  private func write(_ text: IndexText, _ update: ViewUpdate) throws {
    for (name, bytes) in text.files { try update.replace(name, bytes) }
    try Directory(opening: update.directory.path).sync()
  }

  func names(of segments: [PublishedSegment]) -> [String] { [Self.jsonFile, Self.scriptFile] }

  func files(
    of segments: [PublishedSegment], behind removed: Int, in session: SessionID, among names: [String]
  ) -> [(name: String, bytes: [UInt8])] {
    SessionIndex(session: session, segments: segments, hasEnded: names.contains(SessionEnd.file))
      .map { IndexText($0).files } ?? []
  }
}
