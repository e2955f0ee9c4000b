// Brings the batches of a directory into an object store and a queue of names. Each step may be repeated: the object of a batch is
// written unless it is there, its name is queued unless it is there, and then its directory is removed.

import FileSystem
import FrameBatches
import Sessions
import Synchronization
import WorkQueues

package final class BatchForwarder: Sendable {
  /// Held while batches are forwarded: by the thread that does it at intervals, or by a request for an end.
  private let lock = Mutex(())
  private let spool: Spool
  private let batches: ObjectBatchRepository
  private let names: any NameQueue
  private let limits: Limits

  /// - Parameter spool: the directory of batches that were made of pictures.
  package init(_ spool: Spool, to batches: ObjectBatchRepository, _ names: any NameQueue, limits: Limits) {
    (self.spool, self.batches, self.names, self.limits) = (spool, batches, names, limits)
  }

  /// Forwards all batches that are there.
  package func run() throws { try lock.withLock { _ in try forward() } }

  private func forward() throws {
    for entry in try spool.waiting() where entry.kind == .directory {
      let path = spool.incoming + "/" + entry.name
      let files = try Directory(opening: path, followingLinks: false).entries().filter { $0.kind == .file }
      let contents = try files.compactMap { file in
        try DurableFile.contents(of: path + "/" + file.name, limit: limits.fileBytes).map { (file.name, $0) }
      }
      let name = entry.name + ".tar"
      // The name has a random part: an object that has it is the same batch.
      _ = try batches.objects.put(
        ObjectBatchRepository.incoming + name, .bytes(Archive.tar(contents)), .archive, when: .absent)
      _ = try names.add([name])
      try DurableFile.removeTree(spool.hide(path))
    }
  }
}
