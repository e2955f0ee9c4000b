import FileSystem
import Glibc

/// A directory of batches that stay where they are. A spool has the same rule for what is complete.
package struct BatchDirectory: Sendable {
  package let path: String

  /// - Throws: ``BadList`` where there is no such directory; ``DiskError`` where the disk does not tell.
  package init(opening path: String) throws {
    self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    do throws(DiskError) {
      _ = try Directory(opening: path)
    } catch {
      guard [ENOENT, ENOTDIR, EACCES].contains(error.code) else { throw error }
      throw BadList("\(error); check --batches")
    }
  }

  /// Its batches, in the order of their names' bytes.
  package func batches() throws -> [Directory.Entry] {
    try Directory(opening: path).entries().filter { Self.isComplete($0.name) }
  }

  /// Whether a name is a batch's: producers give an unfinished batch another one.
  package static func isComplete(_ name: String) -> Bool {
    !name.hasPrefix(".") && !name.hasSuffix(".tmp") && !name.hasSuffix(".part")
  }

  /// Where one of them lies; nil when its name is not UTF-8.
  package func path(of batch: Directory.Entry) -> String? {
    guard batch.name.utf8.elementsEqual(batch.bytes) else { return nil }
    return path.hasSuffix("/") ? path + batch.name : path + "/" + batch.name
  }

  /// Whether segments may go there: beneath it they would be taken for batches.
  package func allows(output: String) -> Bool {
    var place = output
    // A missing path counts as part of its nearest directory.
    while !["/", "."].contains(place), access(place, F_OK) != 0 { place = DurableFile.parentDirectory(of: place) }
    let (own, resolved) = (DurableFile.resolved(path), DurableFile.resolved(place))
    return resolved != own && !resolved.hasPrefix(own == "/" ? own : own + "/")
  }

  /// Whether a directory that is no batch holds some: what lies first in it is looked at.
  ///
  /// - Parameters:
  ///   - path: as it was given.
  ///   - unpacker: where archives are taken apart; nil for right here.
  package static func holdsBatches(_ path: String, _ limits: Limits, _ unpacker: (any ArchiveUnpacker)?) -> Bool {
    guard let folder = try? BatchDirectory(opening: path), let found = try? folder.batches() else { return false }
    return found.prefix(3).compactMap(folder.path(of:)).contains {
      (try? BatchSessions(
        reading: $0, options: InputOptions(session: "any"), limits: limits, unpacker: unpacker)) != nil
    }
  }
}
