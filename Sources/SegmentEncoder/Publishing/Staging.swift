// `OUTPUT/.staging/<worker>/`: where files are written before they get their names. On the output's own file system,
// so that giving a name is one step; never inside a session, so that nobody sees a half file.

import Synchronization

public final class Staging: Sendable {
  /// The directory all sessions are published in.
  public let output: String
  private let directory: WorkerDirectory
  private let written = Atomic<Int>(0)

  /// Removes what dead workers of this host left there, too.
  public init(output: String, worker: WorkerID) throws {
    let parent = output + "/.staging"
    self.output = output
    directory = try WorkerDirectory(in: parent, worker: worker)
    // What cannot be removed is in nobody's way.
    _ = try WorkerDirectory.takeOver(in: parent) { dead in
      for name in try Staging.files(in: dead) where name != "alive" { try DurableFile.removeTree(dead + "/" + name) }
    }
  }

  /// A path nobody else uses.
  func temporaryFile() -> String {
    directory.path + "/\(written.add(1, ordering: .relaxed).newValue)"
  }

  public func remove() { directory.remove() }

  private static func files(in path: String) throws -> [String] {
    guard try DurableFile.isDirectory(path) else { return [] }
    return try Directory(opening: path).entries().map(\.name)
  }

  /// Whether this process was taken for dead, and has no place to write to any more.
  public var isCutOff: Bool { directory.isLost }

  /// What can still be written where the output lies, in bytes.
  public func freeBytes() throws -> Int { try DurableFile.freeBytes(at: output) }
}
