// The folders of one job: numbered pictures, which a program has put into a folder for each part, hour or thousand of them.

import FileSystem

/// The folders with numbered pictures in a folder that has none itself.
package struct NumberedFolders: Equatable {
  /// Maximum number of folders above a picture.
  private static let maximumDepth = 8

  /// From the folder, in the natural order of their names: `part2` comes before `part10`.
  package private(set) var paths: [String] = []
  /// The first picture whose name has no number.
  private var unnumbered: String?

  /// - Parameter path: as the user names it.
  /// - Returns: nil for a folder with pictures or a description of its own, and for one without pictures in folders.
  package init?(in path: String, limits: Limits) throws(DiskError) {
    guard DurableFile.isReachableDirectory(path) else { return nil }
    var count = 0
    // Paths, and no open directories: there may be thousands.
    var waiting = [(path: "", depth: 0)]
    while let (inner, depth) = waiting.popLast() {
      let directory = try Directory(opening: path.asFolder + inner, followingLinks: inner.isEmpty)
      let entries = try directory.entries(limit: limits.folderEntries - count)
      count += entries.count
      guard count <= limits.folderEntries else { return nil }
      let links = entries.filter { $0.kind == .link && PictureNames.isPicture($0.name) }.map(\.name)
      let files =
        entries.filter { $0.kind == .file && !isRecorderJunk($0.name) }.map(\.name)
        + (links.count >= PictureNames.fewestLinks ? links : [])
      if files.contains(where: PictureNames.isPicture) || files.contains(where: NativeFormat.isDescription) {
        guard depth > 0 else { return nil }
        paths.append(inner)
        let strange = files.first { PictureNames.isPicture($0) && !$0.contains(where: \.isASCIIDigit) }
        unnumbered = unnumbered ?? strange.map { inner.asFolder + $0 }
        continue
      }
      guard depth < Self.maximumDepth else { continue }
      for entry in entries where entry.kind == .directory && !entry.name.hasPrefix(".") {
        guard entry.name.utf8.elementsEqual(entry.bytes) else { return nil }
        waiting.append((inner.isEmpty ? entry.name : inner.asFolder + entry.name, depth + 1))
      }
    }
    guard !paths.isEmpty else { return nil }
    paths.sort { NaturalOrder.precedes($0, $1) }
  }

  /// Returns the reason why the folders are not one counter, and what to do; nil if they are.
  ///
  /// - Parameters:
  ///   - folder: the folder around them, as the user names it.
  ///   - command: the command for some folders.
  package func fault(in folder: String, _ command: (_ folders: [String]) -> String) -> BadBatch? {
    func all(_ paths: some Sequence<String>) -> [String] { paths.map { folder.asFolder + $0 } }
    if let unnumbered {
      return BadBatch(
        "read", folder, "its pictures lie in folders, and '\(unnumbered.shortened(to: 255))' has no number in its name",
        advice: "move it away, or name the folders of numbered pictures, in their order")
    }
    guard let other = paths.first(where: { NaturalOrder.form(of: $0) != NaturalOrder.form(of: paths[0]) }) else {
      return nil
    }
    let names = "'\(paths[0].shortened(to: 80))' and '\(other.shortened(to: 80))'"
    return BadBatch(
      "read", folder, "its pictures lie in \(paths.count) folders whose names do not count, as \(names)",
      advice: paths.count > 8
        ? "name the folders of one film, in their order"
        : "for a film of each: \(command(all([paths[0]]))); for one film of all: \(command(all(paths)))")
  }
}

extension String {
  /// The path of a folder, with a slash at its end.
  package var asFolder: String { hasSuffix("/") ? self : self + "/" }
}

extension Character {
  fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
