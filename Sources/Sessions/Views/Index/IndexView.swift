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
    for (name, bytes) in new.index.files { try update.replace(name, bytes) }
    try Directory(opening: update.directory.path).sync()
    return ViewOutcome()
  }

  func rebuild(
    _ update: ViewUpdate, from segments: [PublishedSegment], _ entries: [Directory.Entry]
  ) throws -> ViewOutcome {
    for (name, bytes) in files(of: segments, in: update.directory.session, among: entries.map(\.name)) {
      try update.write(name, bytes)
    }
    try Directory(opening: update.directory.path).sync()
    return ViewOutcome()
  }

  func names(of segments: [PublishedSegment]) -> [String] { [Self.jsonFile, Self.scriptFile] }

  func files(
    of segments: [PublishedSegment], in session: SessionID, among names: [String]
  ) -> [(name: String, bytes: [UInt8])] {
    SessionIndex(session: session, segments: segments, hasEnded: names.contains(SessionEnd.file))
      .map { IndexText($0).files } ?? []
  }
}
