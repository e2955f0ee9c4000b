import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import SegmentEncoder
@testable import Sessions

/// An update of views that fails is retried with growing pauses, and one that can succeed again does.
@Suite struct FailingViewTests {
  private let package: GrowingPackage

  init() throws { package = try GrowingPackage() }

  /// Updates views as the worker's loop does, for 12 seconds, and returns the number of failures. Pauses of a half, one, two and four
  /// seconds, or their halves, allow five or six.
  private func failures(_ flush: () -> [ViewUpdateFailure], waiting dueInMs: () -> Int?) -> Int {
    let endMs = package.nowMs + 12_000
    var count = 0
    while package.nowMs < endMs {
      count += flush().count
      package.pass(ms: max(20, dueInMs() ?? 1_000))
    }
    return count
  }

  private func blockPackage() throws {
    let hls = package.output + "/walk/hls"
    try DurableFile.removeTree(hls)
    try Data([1]).write(to: URL(fileURLWithPath: hls))
  }

  private func unblockPackage() throws { try DurableFile.removeTree(package.output + "/walk/hls") }

  @Test func lastingFailureOfAPlaylistIsRetriedWithGrowingPauses() throws {
    let (views, staging) = (package.views(), try package.staging())
    _ = try BatchEncoder(BatchEncoder.Options(), staging: staging, index: views).publish(package.batch(0..<2))
    try blockPackage()
    package.pass(ms: try #require(views.dueInMs))
    let count = failures({ views.flushPending(staging) }, waiting: { views.dueInMs })
    #expect((5...6).contains(count))
    // The end of a drain does not wait for the pause, and reports the failure.
    #expect(views.flushPending(staging, all: true).map(\.isOurs) == [true])
    try unblockPackage()
    package.pass(ms: try #require(views.dueInMs))
    #expect(views.flushPending(staging).isEmpty && views.dueInMs == nil)
    #expect(try package.files() == package.wanted())
  }

  @Test func viewsOfADeadWorkerAreRetriedWithGrowingPauses() throws {
    let staging = try package.staging()
    _ = try BatchEncoder(BatchEncoder.Options(), staging: staging, index: package.views()).publish(package.batch(0..<2))
    try blockPackage()
    #expect(utimensat(AT_FDCWD, package.output + "/.behind/walk", [timespec(), timespec()], 0) == 0)
    let views = package.views()
    let count = failures({ views.flushPending(staging) }, waiting: { views.dueInMs })
    #expect((4...6).contains(count))
    #expect(views.flushPending(staging, all: true).map(\.isOurs) == [false])
    try unblockPackage()
    package.pass(ms: 60_000)
    #expect(views.flushPending(staging).isEmpty)
    #expect(try package.files() == package.wanted() && !DurableFile.exists(package.output + "/.behind/walk"))
  }

  @Test func failureThatAnotherWorkerMendsFailsNoRun() throws {
    let session = try #require(SessionID("walk"))
    func failsRun(_ error: any Error, _ work: ViewUpdateFailure.Work = .ownViews) -> Bool {
      ViewUpdateFailure(session, work, error).failsRun
    }
    let full = DiskError("write", "session.json", code: ENOSPC)
    #expect(failsRun(full) && failsRun(full, .abandonedViews) && failsRun(SessionHeld()))
    #expect(!failsRun(SessionHeld(), .abandonedViews) && !failsRun(Cancelled()))
    #expect(!failsRun(SegmentWriteConflict(name: "store", key: "index")))
    #expect(!failsRun(full, .removal))
  }

  @Test func failedRemovalInAStoreFailsNoRun() throws {
    let name = "segment-1767859512340-90c15cef.m4s"
    var failures: [ViewUpdateFailure] = []
    for request in 0..<12 {
      package.objects["output/walk/hls/" + name] = [1]
      package.objects["superseded/walk"] = Array("1 \(name)\n".utf8)
      let client = StoppingObjects(package.objects, after: request, failures: 1)
      failures += try package.store(client).flushPending(all: true)
    }
    // Of the list, the playlist, the removal and so on.
    #expect(failures.count > 3 && failures.allSatisfy { $0.work == .removal && !$0.failsRun }, "\(failures)")
  }

  @Test func lastingFailureOfAStoreIsRetriedWithGrowingPauses() throws {
    let store = try package.store()
    _ = try package.encoder(store).publish(package.batch(0..<2))
    // The first scan comes at once, the playlist later.
    #expect(store.flushPending(all: false).isEmpty)
    package.pass(ms: 15_000)
    package.objects.fail(from: 0)
    let count = failures({ store.flushPending(all: false) }, waiting: { store.dueInMs })
    #expect((5...6).contains(count))
    #expect(store.flushPending(all: true).map(\.isOurs) == [true])
    package.objects.fail(from: nil)
    package.pass(ms: 60_000)
    #expect(store.flushPending(all: false).isEmpty)
    #expect(try package.storedFiles == package.storedWanted())
  }
}
