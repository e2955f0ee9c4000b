import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import Sessions
@testable import Showing

/// A catalog's look for sessions that were deleted or removed, which `serve` repeats for ever.
@Suite struct RemovedSessionTests {
  private let scratch: ScratchDirectory
  private let output: String
  private let session: SessionID

  init() throws {
    scratch = try ScratchDirectory()
    output = scratch.path("output")
    session = try #require(SessionID("walk"))
    _ = try scratch.directory("output/walk")
    try scratch.file("output/walk/session.json", Array("{}".utf8))
  }

  /// Renames the session's directory.
  private func move(_ name: String, to other: String) throws {
    try FileManager.default.moveItem(atPath: output + "/" + name, toPath: output + "/" + other)
  }

  private func setModified(_ seconds: Int) {
    let times = [timespec(tv_sec: seconds, tv_nsec: 0), timespec(tv_sec: seconds, tv_nsec: 0)]
    #expect(utimensat(AT_FDCWD, output, times, 0) == 0)
  }

  @Test func listedSessionOfWhichNothingElseIsCachedCostsNoLook() throws {
    let catalog = try SessionCatalog(of: output)
    #expect(try catalog.sessions().count == 1)
    // Any call that reads the output fails now.
    try DurableFile.removeTree(output)
    #expect(try catalog.forgetRemoved(and: []).all.isEmpty)
  }

  @Test func knownSessionIsLookedForAfterAChangeOnly() throws {
    let catalog = try SessionCatalog(of: output)
    setModified(1_000)
    for _ in 0..<2 { #expect(try catalog.forgetRemoved(and: [session]).all.isEmpty) }
    // A look would find that the session is missing. Real changes change the directory's time.
    try move("walk", to: "gone")
    setModified(1_000)
    #expect(try catalog.forgetRemoved(and: [session]).all.isEmpty)
    // Another session is looked for all the same, as often as it is asked for.
    let other = try #require(SessionID("other"))
    for _ in 0..<3 { #expect(try catalog.forgetRemoved(and: [session, other]).missing == [other]) }
    setModified(2_000)
    for _ in 0..<3 { #expect(try catalog.forgetRemoved(and: [session]).missing == [session]) }
  }

  /// The file system's clock ticks every few milliseconds.
  @Test func secondChangeWithinATickOfTheClockIsSeen() throws {
    let catalog = try SessionCatalog(of: output)
    setModified(1_000)
    #expect(try catalog.forgetRemoved(and: [session]).all.isEmpty)
    try move("walk", to: "gone")
    setModified(1_000)
    #expect(try catalog.forgetRemoved(and: [session]).missing == [session])
  }

  @Test func deletedSessionIsSeenByItsTombstone() throws {
    let catalog = try SessionCatalog(of: output)
    for _ in 0..<3 { #expect(try catalog.forgetRemoved(and: [session]).all.isEmpty) }
    _ = try scratch.directory("output/.deleted")
    try scratch.file("output/.deleted/walk.json", [])
    for _ in 0..<3 { #expect(try catalog.forgetRemoved(and: [session]).deleted == [session]) }
  }
}
