import FileSystem
import FrameBatches

/// A tar that is written file by file, and gets its name when it is whole.
package struct ReportArchive {
  /// A tar ends with two empty blocks of 512 bytes.
  private static let endBytes = 1_024

  /// The path of the tar once it is written.
  let path: String
  /// The names and sizes of its files.
  private(set) var files: [(name: String, bytes: Int)] = []
  private let output: OutputFile
  private var offset = 0

  /// - Parameter directory: is made if it is missing.
  package init(in directory: String) throws {
    try DurableFile.makeDirectories(directory)
    path = "\(directory)/report-\(WallClock.nowMs).tar"
    output = try OutputFile(unnamedIn: directory)
  }

  mutating func add(_ name: String, _ bytes: [UInt8]) throws {
    let piece = try Archive.tar([(name, bytes)]).dropLast(Self.endBytes)
    try output.write(Array(piece), at: offset)
    offset += piece.count
    files.append((name, bytes.count))
  }

  /// Ends the tar, and gives it its name.
  mutating func finish() throws {
    try output.write([UInt8](repeating: 0, count: Self.endBytes), at: offset)
    offset += Self.endBytes
    try output.publish(as: path)
  }

  /// The size of the whole tar.
  var bytes: Int { offset }
}
