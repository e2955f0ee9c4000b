import FileSystem
import Glibc

/// A directory of batches, which are read in place. A spool has the same rule for complete batches.
package struct BatchDirectory: Sendable {
  package let path: String

  /// - Throws: ``Failure`` if there is no such directory; ``DiskError`` if the check fails.
  package init(opening path: String) throws {
    self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    do throws(DiskError) {
      _ = try Directory(opening: path)
    } catch {
      guard [ENOENT, ENOTDIR, EACCES].contains(error.code) else { throw error }
      throw Failure(.usage, "\(error); check --batches")
    }
  }

  /// Returns the batches, in the order of their names' bytes.
  package func batches() throws -> [Directory.Entry] {
    try Directory(opening: path).entries().filter { Self.isComplete($0.name) }
  }

  /// Whether the name is that of a complete batch: producers give an unfinished batch another name.
  package static func isComplete(_ name: String) -> Bool {
    !name.hasPrefix(".") && !name.hasSuffix(".tmp") && !name.hasSuffix(".part")
  }

  /// Returns the path of a batch; nil if its name is not UTF-8.
  package func path(of batch: Directory.Entry) -> String? {
    guard batch.name.utf8.elementsEqual(batch.bytes) else { return nil }
    return path.hasSuffix("/") ? path + batch.name : path + "/" + batch.name
  }

  /// Whether segments may be written to a directory. Segments below this directory would be read as batches.
  package func allows(output: String) -> Bool {
    var place = output
    // A missing path counts as part of its nearest directory.
    while !["/", "."].contains(place), unsafe access(place, F_OK) != 0 {
      place = DurableFile.parentDirectory(of: place)
    }
    let (own, resolved) = (DurableFile.resolved(path), DurableFile.resolved(place))
    return resolved != own && !resolved.hasPrefix(own == "/" ? own : own + "/")
  }

  /// Whether a directory contains batches, and no pictures beside them. Only its first three entries are read.
  ///
  /// - Parameters:
  ///   - path: as given by the user.
  ///   - unpacker: unpacks archives in another process; nil to unpack them in this process.
  package static func holdsBatches(_ path: String, _ limits: Limits, _ unpacker: (any ArchiveUnpacker)?) -> Bool {
    guard let folder = try? BatchDirectory(opening: path), let found = try? folder.batches(),
      !found.contains(where: { $0.kind == .file && PictureNames.isPicture($0.name) })
    else { return false }
    return found.prefix(3).compactMap(folder.path(of:)).contains {
      (try? BatchSessions(
        reading: $0, options: InputOptions(session: "any"), limits: limits, unpacker: unpacker)) != nil
    }
  }
}
