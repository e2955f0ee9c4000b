import Encoding
import FileSystem
import FrameBatches

/// `session.json` and `session.ffconcat`. They are one view: the list of the first tells where the second ends, and both have to be
/// of the same moment to be extended.
package struct IndexView: SessionView {
  /// Every session has it.
  var kind: ViewKinds { [] }
  var entryPoints: [String] { names(of: []) }

  func isPresent(in session: SessionDirectory, _ entries: [Directory.Entry]) -> Bool {
    entries.contains { $0.name == IndexText.jsonFile }
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
    guard let json = try update.contents(of: IndexText.jsonFile),
      let script = try update.contents(of: IndexText.scriptFile),
      let text = IndexText.removing(
        removal.removed.map(\.entry), before: removal.first.entry, last: removal.last.entry, json: json,
        script: script, of: update.directory.session)
    else { return false }
    try write(text, update)
    return true
  }

  private func write(_ text: IndexText, _ update: ViewUpdate) throws {
    for (name, bytes) in text.files { try update.replace(name, bytes) }
    try Directory(opening: update.directory.path).sync()
  }

  func names(of segments: [PublishedSegment]) -> [String] { [IndexText.jsonFile, IndexText.scriptFile] }

  func files(
    of segments: [PublishedSegment], behind removed: Int, in session: SessionID, among names: [String]
  ) -> [(name: String, bytes: [UInt8])] {
    SessionIndex(session: session, segments: segments, hasEnded: names.contains(SessionEnd.file))
      .map { IndexText($0).files } ?? []
  }
}
