import TestSupport
import Testing

@testable import Collecting
@testable import FileSystem
@testable import FrameBatches

/// `--session-every`, and `--since`.
@Suite struct PeriodCutTests {
  /// Midnight between January 8 and 9 in Berlin.
  private static let midnightMs: Int64 = 1_767_913_200_000
  private let folder: CollectedFolder

  init() throws {
    folder = try CollectedFolder()
    folder.rules.period = SessionPeriod("day", in: try #require(try ZoneRules(named: "Europe/Berlin")))
  }

  private func capture(_ below: String, _ seconds: Int64...) throws {
    for second in seconds { try folder.add(below + "\(Self.midnightMs + second * 1_000).jpg") }
  }

  private static func made(
    _ session: String, _ seconds: [Int64], end: Int64, isFinal: Bool = false, isOpen: Bool = false
  )
    -> CollectedFolder.Made
  {
    .init(
      session: session, times: seconds.map { midnightMs + $0 * 1_000 }, endMs: midnightMs + end * 1_000,
      isFinal: isFinal, isOpen: isOpen)
  }

  @Test func firstPictureOfADayEndsTheSessionOfTheDayBefore() throws {
    try capture("", -3, -2, -1)
    try folder.pass(seconds: 8)
    try capture("", 0, 1)
    try folder.pass(seconds: 70)
    #expect(
      try folder.batches() == [
        Self.made("shots-2026-01-08", [-3, -2], end: -1),
        Self.made("shots-2026-01-08", [-1], end: 0, isFinal: true, isOpen: true),
        Self.made("shots-2026-01-09", [0], end: 1), Self.made("shots-2026-01-09", [1], end: 2, isOpen: true),
      ])
  }

  @Test func aPauseEndsNoSessionAndNoOtherBegins() throws {
    try capture("", -9_000)
    try folder.pass(seconds: 70)
    try folder.start()
    try capture("", -10)
    try folder.pass(seconds: 70)
    try capture("", 10)
    try folder.pass(seconds: 70)
    #expect(
      try folder.batches().map { "\($0.session) \($0.isFinal)" } == [
        "shots-2026-01-08 false", "shots-2026-01-08 false", "shots-2026-01-09 false",
      ])
  }

  @Test func foldersAndMonitorsHaveDays() throws {
    folder.rules.isRecursive = true
    folder.rules.session = "hall"
    try capture("kiosk-07/2026-01-08/", -2, -1)
    try capture("kiosk-07/2026-01-09/", 0)
    try folder.add("kiosk-08/\(Self.midnightMs)_m1.jpg")
    try capture("", -1, 1)
    try folder.pass(seconds: 70)
    #expect(
      try folder.batches().map { "\($0.session) \($0.times.count) \($0.isFinal)" } == [
        "hall-2026-01-08 1 true", "hall-2026-01-09 1 false", "hall.kiosk-07-2026-01-08 2 true",
        "hall.kiosk-07-2026-01-09 1 false", "hall.kiosk-08-2026-01-09.m1 1 false",
      ])
  }

  @Test func manyPicturesOfTwoPeriodsAreCutIntoBatches() throws {
    folder.rules.period = SessionPeriod("6 hours", in: try #require(try ZoneRules(named: "Europe/Berlin")))
    for second in -100..<100 as Range<Int64> { try capture("", second) }
    try folder.pass(seconds: 70)
    let made = try folder.batches()
    #expect(made.flatMap(\.times).count == 200)
    #expect(made.filter(\.isFinal).map(\.session) == ["shots-2026-01-08T18"])
    #expect(made.last { $0.session == "shots-2026-01-08T18" }?.isFinal == true)
    #expect(made.last?.session == "shots-2026-01-09T00")
  }

  @Test func aLatePictureGoesToItsOwnDay() throws {
    try capture("", -1, 0, 1)
    try folder.pass(seconds: 8)
    try capture("", -100, 2, 3)
    try folder.pass(seconds: 70)
    let made = try folder.batches()
    #expect(made.first { $0.times.contains(Self.midnightMs - 100_000) }?.session == "shots-2026-01-08")
    #expect(Set(made.filter { $0.times[0] >= Self.midnightMs }.map(\.session)) == ["shots-2026-01-09"])
    #expect(made.flatMap(\.times).count == 6)
  }

  @Test func olderPicturesAreLeftAndCounted() throws {
    folder.rules.sinceMs = Self.midnightMs
    try capture("", -2, -1, 0, 1)
    try folder.pass(seconds: 70)
    #expect(try folder.batches().flatMap(\.times) == [Self.midnightMs, Self.midnightMs + 1_000])
    #expect(try names(in: folder.folder).count == 2)
    let totals = try #require(folder.collector?.totals)
    #expect(totals.older == 2 && totals.pictures == 2 && totals.left == 0)
    #expect(totals.description(in: "spool").contains("2 pictures of 1 session in spool; 2 older than --since left"))
  }
}
