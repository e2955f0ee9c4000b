import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import Sessions

/// Directories for unpublished files. A cleaner of temporary files may remove a private one while its process runs.
@Suite struct StagingTests {
  private let scratch: ScratchDirectory
  private let path: String

  init() throws {
    scratch = try ScratchDirectory()
    path = scratch.path("encoder-worker")
  }

  private func mode() throws -> mode_t {
    var status = stat()
    #expect(lstat(path, &status) == 0)
    return status.st_mode & 0o777
  }

  /// The ways to use a staging.
  private static let uses: [(String, @Sendable (Staging) throws -> Void)] = [
    ("write", { _ = try $0.write([1]) }), ("room", { _ = try $0.freeBytes() }),
    ("directory", { try Staging.Scratch(in: $0).make() }),
  ]

  @Test(arguments: 0..<3) func privateDirectoryIsMadeAgainAsAtTheStart(use: Int) throws {
    let staging = try Staging(scratch: path, worker: WorkerID())
    for _ in 0..<2 {
      try DurableFile.removeTree(path)
      try Self.uses[use].1(staging)
      #expect(try mode() == 0o700 && !staging.isCutOff, "\(Self.uses[use].0)")
      let own = (staging.temporaryFile() as NSString).deletingLastPathComponent
      // The lock is there, so no other process removes the files.
      #expect(try WorkerDirectory.isAlive(own))
      let file = try staging.write([1, 2])
      let other = try Staging(scratch: path, worker: WorkerID())
      #expect(try DurableFile.contents(of: file, limit: 9) == [1, 2])
      other.remove()
    }
    staging.remove()
  }

  @Test func removedStagingStaysRemoved() throws {
    let staging = try Staging(scratch: path, worker: WorkerID())
    staging.remove()
    _ = try staging.freeBytes()
    #expect(try names(in: path + "/.staging") == [])
  }

  /// Another process has taken the worker for dead, or an operator has removed its files: it must end.
  @Test func directoryInAnOutputIsNotMadeAgain() throws {
    let staging = try Staging(output: path, worker: WorkerID())
    let own = (staging.temporaryFile() as NSString).deletingLastPathComponent
    try DurableFile.removeTree(own)
    #expect(throws: DiskError.self) { try staging.write([1]) }
    #expect(staging.isCutOff)
  }

  /// Without a private directory the files of one user could be read, or put there, by others.
  @Test func directoryThatOthersCanReadBecomesPrivateAndOneThatTheyCanWriteIsRefused() throws {
    #expect(mkdir(path, 0o755) == 0 && chmod(path, 0o755) == 0)
    try Staging(scratch: path, worker: WorkerID()).remove()
    #expect(try mode() == 0o700)
    for open in [0o777, 0o770, 0o1777] as [mode_t] {
      #expect(chmod(path, open) == 0)
      let failure = try #require(throws: Failure.self) { try Staging(scratch: path, worker: WorkerID()) }
      #expect(failure.kind == .environment && failure.advice.contains("TMPDIR") && failure.subject == path)
    }
    try DurableFile.removeTree(path)
    #expect(symlink(scratch.path, path) == 0)
    #expect(throws: Failure.self) { try Staging(scratch: path, worker: WorkerID()) }
  }
}
