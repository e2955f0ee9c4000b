import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// Screens that do not change for long, over the batches of a session.
@Suite struct FrozenScreensTests {
  private static let afterMs: Int64 = 300_000
  private let screens = FrozenScreens(afterMs: afterMs)

  /// Returns the receipt of a batch whose last captures look the same.
  private func receipt(
    _ session: String = "hall", from sinceMs: Int64, to untilMs: Int64, whole: Bool = true, picture: String = "a",
    blank: Bool = false
  ) throws -> Receipt {
    let batch = try BatchSessions(
      reading: Fixture("single-frame").path, options: InputOptions(session: session), limits: Limits()
    ).readers[0].batch
    var receipt = Receipt(
      [.made(sinceMs, untilMs + 1_000)], of: batch, refused: [], duplicate: false, warnings: [])
    receipt.screen = StillScreen(
      sinceMs: sinceMs, untilMs: untilMs, isWhole: whole, picture: picture, isBlank: blank)
    return receipt
  }

  private func frozen(_ session: String, sinceMs: Int64, untilMs: Int64, isBlank: Bool) throws -> FrozenScreen {
    FrozenScreen(session: try #require(SessionID(session)), sinceMs: sinceMs, untilMs: untilMs, isBlank: isBlank)
  }

  @Test func pictureOfManyBatchesIsReportedOnce() throws {
    #expect(try screens.add(receipt(from: 10_000, to: 60_000, whole: false), nowMs: 0) == nil)
    #expect(try screens.add(receipt(from: 61_000, to: 309_999), nowMs: 0) == nil && screens.counts(nowMs: 0) == (0, 0))
    let found = try screens.add(receipt(from: 311_000, to: 311_000, blank: true), nowMs: 0)
    let screen = try frozen("hall", sinceMs: 10_000, untilMs: 311_000, isBlank: true)
    #expect(found == .frozen(screen) && screens.counts(nowMs: 0) == (1, 1))
    #expect(try screens.add(receipt(from: 312_000, to: 400_000), nowMs: 0) == nil)
    // Another session has its own screen.
    #expect(try screens.add(receipt("yard", from: 312_000, to: 400_000), nowMs: 0) == nil)
    let changed = try screens.add(receipt(from: 402_000, to: 403_000, whole: false, picture: "b"), nowMs: 0)
    #expect(try changed == .changed(frozen("hall", sinceMs: 10_000, untilMs: 400_000, isBlank: false)))
    #expect(screens.counts(nowMs: 0) == (0, 0))
  }

  @Test func screenIsFrozenWithinOneBatch() throws {
    #expect(try screens.add(receipt(from: 0, to: 299_999, whole: false), nowMs: 0) == nil)
    let found = try screens.add(receipt("yard", from: 0, to: 300_000, whole: false), nowMs: 0)
    #expect(try found == .frozen(frozen("yard", sinceMs: 0, untilMs: 300_000, isBlank: false)))
  }

  /// Each of these begins anew: nothing is said.
  @Test(
    arguments: [
      // Another picture, and a batch in which it came back.
      (from: 200_000, to: 400_000, whole: true, picture: "b"), (from: 200_000, to: 400_000, whole: false, picture: "a"),
      // Nobody recorded for longer than a screen may stand.
      (from: 550_000, to: 560_000, whole: true, picture: "a"),
    ] as [(Int64, Int64, Bool, String)])
  func anotherPictureOrAPauseBeginsAnew(from: Int64, to: Int64, whole: Bool, picture: String) throws {
    #expect(try screens.add(receipt(from: 0, to: 200_000), nowMs: 0) == nil)
    #expect(try screens.add(receipt(from: from, to: to, whole: whole, picture: picture), nowMs: 0) == nil)
  }

  @Test func lateBatchTellsNothing() throws {
    _ = try screens.add(receipt(from: 0, to: 400_000), nowMs: 0)
    #expect(try screens.add(receipt(from: 100_000, to: 200_000, picture: "b"), nowMs: 0) == nil)
    #expect(screens.counts(nowMs: 0) == (1, 0))
  }

  @Test func sessionThatStopsCountsNoMore() throws {
    _ = try screens.add(receipt(from: 0, to: 400_000), nowMs: 1_000)
    #expect(screens.counts(nowMs: 1_000 + Int(Self.afterMs)) == (1, 0))
    #expect(screens.counts(nowMs: 1_001 + Int(Self.afterMs)) == (0, 0))
  }

  @Test func numberOfSessionsIsBounded() throws {
    var receipt = try receipt(from: 0, to: 400_000)
    let screen = receipt.screen
    for number in 0...FrozenScreens.maximumSessions {
      receipt = Receipt(refusing: "b", of: try #require(SessionID("s\(number)")), because: "")
      receipt.screen = screen
      _ = screens.add(receipt, nowMs: number)
    }
    // The oldest half went.
    #expect(screens.counts(nowMs: 0).frozen == FrozenScreens.maximumSessions / 2 + 1)
  }
}
