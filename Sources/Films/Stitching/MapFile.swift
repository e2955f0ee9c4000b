import FileSystem
import JSON

/// A file for the map of a film.
package struct MapFile: Sendable, Equatable {
  /// The endings of its name, for a message.
  package static let rule = "a file that ends in .json or .vtt"

  let path: String
  private let isTrack: Bool

  /// - Returns: nil for a name that ``rule`` does not describe.
  package init?(_ path: String) {
    let name = path.lowercased()
    guard name.hasSuffix(".json") || name.hasSuffix(".vtt") else { return nil }
    (self.path, isTrack) = (path, name.hasSuffix(".vtt"))
  }

  /// - Throws: ``BadTarget`` if it cannot be written.
  package func check() throws { _ = try Stitching.file(path) }

  /// Writes the map. A file of the name is replaced when it is whole: a killed process leaves nothing.
  package func write(_ map: NamedMap) throws {
    try Stitching.replace(path, with: isTrack ? map.track : map.json.bytes(pretty: true) + [UInt8(ascii: "\n")])
  }
}

extension Stitching {
  /// Writes a file beside a film. A file of the name is replaced when it is whole: a killed process leaves nothing.
  ///
  /// - Throws: ``BadTarget`` if it cannot be written.
  package static func replace(_ path: String, with bytes: [UInt8]) throws {
    let target = try Self.file(path)
    let file = try OutputFile(unnamedIn: DurableFile.parentDirectory(of: target))
    try file.write(bytes, at: 0)
    try file.publish(as: target)
  }
}
