// Files of a session that has ended, in a directory. Each is written elsewhere, synced, and renamed under the session's lock, so that no
// reader sees half a file, and none comes back after a deletion.

import FileSystem
import FrameBatches
import Glibc

extension DirectoryStore {
  package func export(
    _ names: [String], of session: SessionID, cancellation: Cancellation,
    make: (_ session: String, _ name: String, _ target: String) throws -> Bool
  ) throws -> [ExportedFile]? {
    let directory = SessionDirectory(output: staging.output, session: session)
    let scratch = Staging.Scratch(in: staging)
    defer { scratch.remove() }
    try scratch.make()
    for name in names where try !DurableFile.isThere(directory.exportPath(name)) {
      try cancellation.check()
      guard try DurableFile.isDirectory(directory.path) else { return nil }
      let file = scratch.path + "/" + name
      guard try make(directory.path, name, file) else { continue }
      try DurableFile.sync(file)
      guard let lock = try directory.lockExisting(cancellation) else { return nil }
      let folder = directory.path + "/" + ExportedFile.directory
      try DurableFile.makeDirectories(folder)
      try check("rename", directory.exportPath(name)) { rename(file, directory.exportPath(name)) }
      try Directory(opening: folder).sync()
      lock.release()
    }
    return try names.filter { try DurableFile.isThere(directory.exportPath($0)) }.map {
      ExportedFile(name: $0, bytes: try DurableFile.size(of: directory.exportPath($0)))
    }
  }
}
