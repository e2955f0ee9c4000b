import FileSystem
import Foundation
import FrameBatches
import JSON
import Synchronization
import TestSupport
import Testing

@testable import Showing

/// The kept list over an output in memory, which counts what is looked at.
@Suite struct SessionListingTests {
  private let output = CountingOutput()
  private let listing: SessionListing

  init() { listing = output.listing() }

  private static func name(_ number: Int) -> String { "session-\(1_000_000 + number)" }

  /// Fills the output, and reads it.
  private func fill(_ count: Int) throws {
    for number in 0..<count { try output.put(Self.name(number), startMs: Int64(number)) }
    try output.settle(listing)
  }

  private struct Page {
    let names: [String]
    let frames: [Int64]
    let members: [String: JSONValue]

    init(_ page: SessionListPage) throws {
      members = try #require(try JSONParser.parse(page.json).object)
      let sessions = members["sessions"]?.array ?? []
      names = sessions.compactMap { $0.object?["session"]?.string }
      frames = sessions.compactMap { $0.object?["frames"]?.integer }
    }
  }

  private func page(behind place: ListPlace? = nil, limit: Int = 500) throws -> Page {
    try Page(listing.page(behind: place, limit: limit))
  }

  /// Returns the names on all pages.
  private func walk(limit: Int, between: (Int) throws -> Void = { _ in }) throws -> [String] {
    var (names, place): ([String], ListPlace?) = ([], nil)
    for number in 0..<1_000 {
      let page = try page(behind: place, limit: limit)
      names += page.names
      guard let next = page.members["next"]?.string else { return names }
      place = ListPlace(next)
      guard place != nil else { break }
      try between(number)
    }
    Issue.record("the pages do not end, or one has a wrong place")
    return names
  }

  // MARK: - Costs

  @Test func pageOfALongListLooksAtItsSessionsAndTheRecentOnesOnly() throws {
    try fill(10_000)
    _ = try page(behind: ListPlace("1000,\(Self.name(1_000))"))
    #expect(output.looks() == .init(directories: 0, indexes: 500 + SessionListing.recentCount, summaries: 0))
    // All recent ones are on the first page.
    _ = try page()
    #expect(output.looks() == .init(directories: 0, indexes: 500, summaries: 0))
    _ = try listing.totals()
    #expect(output.looks() == .init(directories: 0, indexes: SessionListing.recentCount, summaries: 0))
  }

  @Test func changedSessionOfThePageIsReadOnceAndNoOther() throws {
    try fill(10_000)
    // It is not among the recent ones.
    let last = try #require(ListPlace("1000,\(Self.name(1_000))"))
    try output.put(Self.name(700), startMs: 700, frames: 9)
    let changed = try page(behind: last)
    #expect(changed.names.count == 500 && changed.frames[changed.names.firstIndex(of: Self.name(700)) ?? 0] == 9)
    #expect(output.looks().summaries == 1)
    _ = try page(behind: last)
    #expect(output.looks().summaries == 0)
  }

  @Test func changedSessionThatIsRecentAndOnThePageIsReadOnce() throws {
    try fill(10_000)
    try output.put(Self.name(9_999), startMs: 9_999, frames: 9)
    #expect(try page().frames.first == 9)
    #expect(output.looks() == .init(directories: 0, indexes: 500, summaries: 1))
  }

  @Test func newSessionCostsOneLookAtItsIndex() throws {
    try fill(10_000)
    try output.put("new", startMs: 1 << 40)
    #expect(try page().names.first == "new")
    #expect(output.looks() == .init(directories: 1, indexes: 1 + 500, summaries: 1))
  }

  @Test func scansEndWithoutRequests() throws {
    try fill(2_000)
    try listing.refresh()
    #expect(output.looks().indexes == 500)
    output.pass(ms: SessionListing.idleMs)
    try listing.refresh()
    #expect(output.looks() == .init())
    _ = try listing.totals()
    _ = output.looks()
    try listing.refresh()
    #expect(output.looks().indexes == 500)
  }

  // MARK: - Freshness

  @Test func listOfAllAndAShortListShowEachChangeAtOnce() throws {
    try fill(10_000)
    try output.put(Self.name(5), startMs: 1 << 40)
    #expect(try listing.summaries().first?.session.description == Self.name(5))
    #expect(try Page(listing.all()).names.count == 10_000)
    let short = CountingOutput()
    let shortListing = short.listing()
    for number in 0..<SessionListing.fewSessions { try short.put(Self.name(number), startMs: Int64(number)) }
    _ = try shortListing.page(behind: nil, limit: 1)
    try short.put(Self.name(0), startMs: 1 << 40)
    #expect(try Page(shortListing.page(behind: nil, limit: 1)).names == [Self.name(0)])
  }

  @Test func scanFindsEveryChangeWithinItsSteps() throws {
    try fill(30_000)
    let before = try listing.page(behind: nil, limit: 1).revision
    let changed = stride(from: 0, to: 29_000, by: 997).map(Self.name)
    for name in changed { try output.put(name, startMs: 1 << 40, frames: 3) }
    // Each change may have come right behind the place where the scan was: two scans at most.
    for _ in 0..<(2 * SessionListing.scanSteps) { try listing.refresh() }
    let page = try Page(#require(try listing.changes(since: before, limit: 1_000)))
    #expect(Set(page.names) == Set(changed) && page.frames.allSatisfy { $0 == 3 })
    #expect(page.members["more"] == nil && page.members["removed"]?.array == [])
  }

  @Test func sessionIsListedWhenItsIndexAppearsAndNotWhenItHasGone() throws {
    try fill(1_500)
    try output.put("late", startMs: nil)
    #expect(try page().members["total"]?.integer == 1_500)
    try output.put("late", startMs: 1 << 40)
    #expect(try page().names.first == "late")
    try output.put("late", startMs: nil)
    #expect(try page().names.first == Self.name(1_499))
    try output.remove(Self.name(1_499))
    try output.remove("late")
    let rest = try page()
    #expect(rest.names.first == Self.name(1_498) && rest.members["total"]?.integer == 1_499)
    #expect(rest.members["frames"]?.integer == 1_499 && rest.members["bytes"]?.integer == 14_990)
  }

  /// The file system's clock ticks every few milliseconds.
  @Test func secondSessionWithinATickOfTheClockIsFound() throws {
    let scratch = try ScratchDirectory()
    let clock = Mutex(0)
    let listing = SessionListing(
      clock: { clock.withLock { $0 } }, open: { try ListedDirectory(opening: scratch.path) })
    func add(_ name: String) throws {
      _ = try scratch.directory(name)
      try scratch.file("\(name)/session.json", Array("{}".utf8))
      let times = [timespec(tv_sec: 1_000, tv_nsec: 5), timespec(tv_sec: 1_000, tv_nsec: 5)]
      #expect(utimensat(AT_FDCWD, scratch.path, times, 0) == 0)
    }
    for (number, name) in ["a", "b", "c", "d"].enumerated() {
      try add(name)
      clock.withLock { $0 += 20 }
      #expect(try listing.totals().sessions == number + 1)
    }
  }

  // MARK: - Pages

  @Test(arguments: [1, 7, 500, 1_000]) func pagesHaveAllSessionsOnceInOrder(limit: Int) throws {
    try fill(limit == 1 ? 40 : 1_234)
    // Of equal starts the name decides.
    try output.put("same-a", startMs: 17)
    try output.put("same-b", startMs: 17)
    let names = try walk(limit: limit)
    #expect(names == (try listing.summaries().map(\.session.description)))
    #expect(names.count == (limit == 1 ? 42 : 1_236))
  }

  @Test func sessionsThatStayAreOnOnePageEachWhileOthersComeAndGo() throws {
    try fill(2_000)
    let names = try walk(limit: 100) { number in
      try output.put("new-\(number)", startMs: Int64(number % 2 == 0 ? 1 << 40 : 3))
      try output.remove(Self.name(2 * number))
    }
    let stayed = names.filter { $0.hasPrefix("session-") }
    #expect(stayed.count == Set(stayed).count)
    #expect(Set(stayed).isSuperset(of: (0..<1_000).map { Self.name(2 * $0 + 1) }))
  }

  @Test func placeIsReadAsItIsWritten() throws {
    for text in ["17,walk", ",broken", "-3,a", "1,a-b_c.d"] { #expect(ListPlace(text)?.text == text) }
    for text in [
      "", "17", "x,walk", "017,walk", "+1,walk", "1,../walk", "1,\"", "1,", "9223372036854775808,walk", "1,a,b",
    ] {
      #expect(ListPlace(text) == nil, "\(text)")
    }
  }

  // MARK: - Changes

  @Test func changesSinceARevisionAreToldInParts() throws {
    try fill(100)
    let before = try listing.page(behind: nil, limit: 1).revision
    for number in 0..<50 { try output.put(Self.name(number), startMs: 5, frames: 2) }
    for number in 90..<100 { try output.remove(Self.name(number)) }
    var (revision, names, removed, parts) = (before, Set<String>(), Set<String>(), 0)
    while true {
      let changes = try #require(try listing.changes(since: revision, limit: 7))
      let page = try Page(changes)
      names.formUnion(page.names)
      removed.formUnion(page.members["removed"]?.array?.compactMap(\.string) ?? [])
      (revision, parts) = (changes.revision, parts + 1)
      guard page.members["more"]?.bool == true, parts < 100 else { break }
    }
    #expect(names == Set((0..<50).map(Self.name)) && removed == Set((90..<100).map(Self.name)) && parts == 9)
    let nothing = try Page(#require(try listing.changes(since: revision, limit: 7)))
    #expect(nothing.names.isEmpty && nothing.members["since"]?.string == revision)
  }

  @Test func unknownRevisionIsNoRevision() throws {
    try fill(3)
    let (epoch, number) = try #require(
      try listing.page(behind: nil, limit: 1).revision.split(separator: "-").splitOnce())
    for text in [
      "", "-", "x-1", "\(epoch)-\(number + 1)", "\(epoch)--1", "\(epoch)-1-1", "\(epoch)-99999999999999999999",
    ] {
      #expect(try listing.changes(since: text, limit: 10) == nil, "\(text)")
    }
    let other = output.listing()
    #expect(try other.changes(since: "\(epoch)-\(number)", limit: 10) == nil)
  }

  @Test func changesThatAreTooOldAreForgottenAndNotGuessed() throws {
    try fill(3)
    let before = try listing.page(behind: nil, limit: 1).revision
    for number in 0..<10_010 {
      try output.put(Self.name(0), startMs: 5, frames: number + 2)
      _ = try listing.totals()
    }
    #expect(try listing.changes(since: before, limit: 10) == nil)
    let now = try listing.page(behind: nil, limit: 1).revision
    #expect(try listing.changes(since: now, limit: 10) != nil)
  }
}

extension [Substring] {
  /// The text before a number, and the number.
  fileprivate func splitOnce() -> (Substring, Int)? { count == 2 ? Int(self[1]).map { (self[0], $0) } : nil }
}
