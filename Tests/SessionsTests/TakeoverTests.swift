import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import SegmentEncoder
@testable import Sessions

/// The owner of a directory, as other processes determine it.
@Suite struct TakeoverTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func dead() throws -> String {
    let path = try scratch.directory("\(ProcessInfo.processInfo.hostName)~99999999~dead1")
    try scratch.file(URL(fileURLWithPath: path).lastPathComponent + "/alive", [1])
    return path
  }

  @Test func processThatReadsALockIsNotItsOwner() throws {
    let path = try dead()
    let look = open(path + "/alive", O_RDONLY)
    #expect(flock(look, LOCK_SH) == 0)
    let hasBegun = Atomic(false)
    let looking = ThreadGroup()
    try looking.start {
      while !hasBegun.load(ordering: .relaxed) { usleep(1_000) }
      usleep(20_000)
      close(look)
    }
    hasBegun.store(true, ordering: .relaxed)
    var isTaken = false
    try WorkerDirectory.withLockIfOwnerDead(path) { isTaken = true }
    looking.join()
    #expect(isTaken)
  }

  @Test func lockCheckDistinguishesLiveFromDeadOwners() throws {
    #expect(try !WorkerDirectory.isAlive(dead()))
    let worker = try WorkerDirectory(in: scratch.path("claimed"), worker: WorkerID())
    #expect(try WorkerDirectory.isAlive(worker.path))
    var isTaken = false
    try WorkerDirectory.withLockIfOwnerDead(worker.path) { isTaken = true }
    #expect(!isTaken)
    worker.remove()
  }

  @Test func concurrentRemovalsOfASessionSucceed() throws {
    // Several levels, so that both removals overlap.
    let tree = scratch.path("tree")
    for number in 0..<200 {
      let path = try scratch.directory("tree/\(number)/a/b")
      try Data([1]).write(to: URL(fileURLWithPath: path + "/file"))
    }
    let failures = Mutex<[String]>([])
    let removing = ThreadGroup()
    for _ in 0..<4 {
      try removing.start {
        do { try DurableFile.removeTree(tree) } catch { failures.withLock { $0.append("\(error)") } }
      }
    }
    removing.join()
    #expect(failures.withLock { $0 } == [])
    #expect(!DurableFile.exists(tree))
  }

  @Test func viewRebuildStopsOnCancellation() throws {
    let output = scratch.path("output")
    let staging = try Staging(output: output, worker: WorkerID())
    func publish(_ index: SessionViews) throws -> Receipt {
      try BatchEncoder(BatchEncoder.Options(), staging: staging, index: index)
        .publish(Fixture("exact-1fps").path, session: "day")[0]
    }
    #expect(throws: Cancelled.self) { try publish(SessionViews(.thumbnails, shouldContinue: { false })) }
    #expect(!DurableFile.exists(output + "/exact-1fps/thumbnails/thumbnails.vtt"))
    // The segments are published. The next worker updates the views.
    #expect(try publish(SessionViews(.thumbnails)).duplicate)
    #expect(DurableFile.exists(output + "/exact-1fps/thumbnails/thumbnails.vtt"))
    staging.remove()
  }
}
