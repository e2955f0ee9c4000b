import TestSupport
import Testing

@testable import Showing

/// The kept list over disks that fail, clocks that are wrong, and directories without a time.
@Suite struct SessionListingFaultTests {
  private let output = CountingOutput()
  private let listing: SessionListing

  init() { listing = output.listing() }

  private func fill(_ count: Int) throws {
    for number in 0..<count { try output.put("session-\(number)", startMs: Int64(number)) }
    try output.settle(listing)
  }

  private func frames(of name: String) throws -> Int? {
    try listing.summaries().first { $0.session.description == name }?.frames
  }

  @Test func errorOfTheDiskKeepsWhatIsKnown() throws {
    try fill(10)
    try output.put("session-5", startMs: 5, frames: 2)
    output.fail(lost: "session-5")
    #expect(try frames(of: "session-5") == 1)
    output.fail(unreadable: "session-5")
    #expect(try frames(of: "session-5") == 1)
    output.fail()
    #expect(try frames(of: "session-5") == 2)
  }

  @Test(arguments: [true, false]) func newSessionThatTheDiskDoesNotReadSaysWhyUntilItIsRead(isLost: Bool) throws {
    try fill(10)
    try output.put("new", startMs: 5)
    output.fail(lost: isLost ? "new" : nil, unreadable: isLost ? nil : "new")
    let first = try #require(try listing.summaries().first)
    #expect(first.session.description == "new" && first.startMs == nil)
    #expect(first.error?.hasPrefix(isLost ? "stat new: " : "open new: ") == true)
    // Its index has not changed.
    output.fail()
    #expect(try listing.summaries().allSatisfy { $0.error == nil })
    try output.put("new", startMs: nil)
    output.fail(lost: "new")
    #expect(try listing.totals().sessions == 11)
    output.fail()
    #expect(try listing.totals().sessions == 10)
  }

  @Test(arguments: [10, 1_500]) func scanFindsNewAndRemovedSessionsWithoutTheTimeOfTheDirectory(count: Int) throws {
    let output = CountingOutput(stampsItself: false)
    let listing = output.listing()
    for number in 0..<count { try output.put("session-\(number)", startMs: Int64(number)) }
    try output.settle(listing)
    try output.put("new", startMs: 1 << 40)
    try output.remove("session-0")
    for _ in 0..<(2 * SessionListing.scanSteps) { try listing.refresh() }
    let names = try listing.summaries().map(\.session.description)
    #expect(names.first == "new" && names.count == count && !names.contains("session-0"))
  }

  @Test func sessionThatChangedIsRecentAlsoBesideIndexesOfTheFuture() throws {
    for number in 0..<10_000 {
      try output.put("session-\(number)", startMs: Int64(number), aheadNs: number < 250 ? 1 << 50 : 0)
    }
    try output.settle(listing)
    try output.put("session-5000", startMs: 5_000, frames: 2)
    for _ in 0..<(2 * SessionListing.scanSteps) { try listing.refresh() }
    let before = try listing.page(behind: nil, limit: 1).revision
    try output.put("session-5000", startMs: 5_000, frames: 3)
    let changes = try #require(try listing.changes(since: before, limit: 10))
    #expect(String(decoding: changes.json, as: UTF8.self).contains("\"session-5000\""))
  }
}
