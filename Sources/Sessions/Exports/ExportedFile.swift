import FileSystem

/// A file that a worker has made of a session at its end: `exports/NAME` in the session. It is no view: it is made once, with the options
/// of that time.
package struct ExportedFile: Sendable, Equatable {
  /// The directory in the session's.
  package static let directory = "exports"

  package let name: String
  package let bytes: Int

  package init(name: String, bytes: Int) { (self.name, self.bytes) = (name, bytes) }
}

extension SessionDirectory {
  func exportPath(_ name: String) -> String { path + "/" + ExportedFile.directory + "/" + name }

  /// Returns the names of the files that were made at the session's end.
  func exports() throws -> [String] {
    try Directory.entries(ifAt: path + "/" + ExportedFile.directory).filter { $0.kind == .file }.map(\.name).sorted()
  }
}
