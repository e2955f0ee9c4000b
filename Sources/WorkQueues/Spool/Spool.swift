// The spool: a directory whose subdirectories are the states of a batch, and whose renames are its transitions.
//
//   tmp/         producers write here
//   incoming/    owed
//   claimed/     <worker>/<number>.<attempt>.<failures>/NAME: being worked on
//   quarantine/  NAME and NAME.reason.json: cannot be encoded
//   done/        published, kept on request
//   trash/       published, on its way out

import FileSystem
import FrameBatches
import Glibc

package struct Spool: Sendable {
  package let path: String

  package var incoming: String { path + "/incoming" }
  package var temporary: String { path + "/tmp" }
  package var claimed: String { path + "/claimed" }
  package var quarantine: String { path + "/quarantine" }
  package var done: String { path + "/done" }
  var trash: String { path + "/trash" }
  /// Where segments go unless the command says otherwise.
  package var defaultOutput: String { path + "/output" }

  /// Opens a spool, making what is missing of it.
  package init(creating path: String) throws(DiskError) {
    self.init(path)
    for directory in [incoming, temporary, claimed, quarantine, trash] { try DurableFile.makeDirectories(directory) }
  }

  /// Opens a spool that is there.
  ///
  /// - Throws: ``NoSuchSpool``; ``DiskError`` where the disk does not tell.
  package init(opening path: String) throws {
    self.init(path)
    // The others come with the first worker.
    do throws(DiskError) {
      _ = try Directory(opening: incoming)
    } catch {
      throw [ENOENT, ENOTDIR].contains(error.code) ? NoSuchSpool(path: self.path) : error
    }
  }

  private init(_ path: String) { self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path }

  /// The batches that are owed, by name. Names that begin with a dot or end in `.tmp` or `.part` are not there yet.
  package func waiting() throws(DiskError) -> [Directory.Entry] {
    try Directory(opening: incoming).entries().filter { BatchDirectory.isComplete($0.name) }
  }

  /// Whether there is a directory, or a link to one.
  package func isDirectory(_ path: String) -> Bool { DurableFile.isReachableDirectory(path) }

  /// Whether segments may go there: not where batches lie, for a session can have the name of any of these directories.
  package func allows(output: String) -> Bool {
    let output = DurableFile.resolved(output.count > 1 && output.hasSuffix("/") ? String(output.dropLast()) : output)
    let states = [incoming, temporary, claimed, quarantine, done, trash].map(DurableFile.resolved)
    return output != DurableFile.resolved(path) && !states.contains { output == $0 || output.hasPrefix($0 + "/") }
  }

  /// The worker that is about to remove this.
  static func owner(inTrash name: String) -> String { name.split(separator: "~").prefix(3).joined(separator: "~") }
}

/// A given path is no spool.
package struct NoSuchSpool: Error, CustomStringConvertible {
  package let path: String
  package var description: String { "\(path): no spool, there is no directory incoming in it; check --spool" }
}
