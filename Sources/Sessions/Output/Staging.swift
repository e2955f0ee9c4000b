// `OUTPUT/.staging/<worker>/`: unpublished files. They are on the output's file system, so that publication is one rename or link,
// and outside of sessions, so that readers never see half a file.

import Encoding
import FileSystem
import Glibc
import Synchronization

/// An output directory, and a directory of this process in it where files are written before they are published.
package final class Staging: Sendable {
  /// The directory all sessions are published in.
  package let output: String
  private let directory: WorkerDirectory
  /// Whether staged files are published by a link, and so have to be synced.
  private let isDurable: Bool
  private let written = Atomic<Int>(0)

  /// Also removes files of dead workers of this host.
  package convenience init(output: String, worker: WorkerID) throws {
    try self.init(output: output, isDurable: true, worker: worker)
  }

  /// For stores elsewhere: a private directory whose files need not survive a power cut. If a cleaner of temporary files removes it, it
  /// is made again when it is next used.
  ///
  /// - Throws: ``DiskError``; ``Failure`` if the directory belongs to another user, or if others may write to it.
  package convenience init(scratch: String, worker: WorkerID) throws {
    try Self.makePrivate(scratch)
    try self.init(output: scratch, isDurable: false, worker: worker)
  }

  /// Makes a directory that only this user can read, if it is missing.
  private static func makePrivate(_ path: String) throws {
    if mkdir(path, 0o700) != 0 && errno != EEXIST { throw DiskError("mkdir", path) }
    var status = stat()
    try check("stat", path) { lstat(path, &status) }
    guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(), status.st_mode & 0o022 == 0 else {
      throw Failure(
        .environment, "use", path, "it is no directory of this user alone",
        advice: "remove it, or set TMPDIR to another directory")
    }
    // Others had no way to put files there.
    if status.st_mode & 0o077 != 0 { try check("chmod", path) { chmod(path, 0o700) } }
  }

  /// Makes the directory again if it is private, and a cleaner of temporary files has removed it.
  private func restore() throws {
    guard !isDurable else { return }
    try Self.makePrivate(output)
    try directory.restore()
  }

  /// Makes a directory in the one of this process.
  func makeDirectory(_ path: String) throws {
    try restore()
    try DurableFile.makeDirectories(path)
  }

  private init(output: String, isDurable: Bool, worker: WorkerID) throws {
    let parent = output + "/.staging"
    self.output = output
    self.isDurable = isDurable
    directory = try WorkerDirectory(in: parent, worker: worker)
    // Leftovers that cannot be removed do no harm.
    _ = try Self.removeLeftovers(in: output)
  }

  /// Removes unpublished files of dead workers of this host.
  ///
  /// - Returns: the failures of single directories.
  package static func removeLeftovers(in output: String) throws -> [any Error] {
    let parent = output + "/.staging"
    guard try DurableFile.isDirectory(parent) else { return [] }
    return try WorkerDirectory.takeOver(in: parent) { dead in
      for entry in try Directory(opening: dead).entries() where entry.name != "alive" {
        try DurableFile.removeTree(dead + "/" + entry.name)
      }
    }
  }

  /// Returns the directories of unpublished files of workers of other hosts, dead or alive.
  package static func ofOtherHosts(in output: String) throws -> [String] {
    let parent = output + "/.staging"
    return try DurableFile.isDirectory(parent) ? WorkerDirectory.ofOtherHosts(in: parent) : []
  }

  /// Writes a file that no other process uses.
  ///
  /// - Returns: its path.
  package func write(_ bytes: [UInt8]) throws -> String {
    try restore()
    let path = temporaryFile()
    try DurableFile.create(path, bytes, isDurable: isDurable)
    return path
  }

  /// Returns the path of a video's file, which is written if the video is in memory.
  func file(of video: StagedVideo) throws -> String {
    switch video {
    case .file(let path): path
    case .bytes(let bytes): try write(bytes)
    case .part(let file, let range): try write(file.bytes(range))
    }
  }

  /// A path that no other process uses.
  package func temporaryFile() -> String {
    directory.path + "/\(written.add(1, ordering: .relaxed).newValue)"
  }

  package func remove() { directory.remove() }

  /// Whether another process took this one for dead and removed its directory.
  package var isCutOff: Bool { directory.isLost }

  /// Free bytes on the output's file system.
  package func freeBytes() throws -> Int {
    try restore()
    return try DurableFile.freeBytes(at: output)
  }
}
