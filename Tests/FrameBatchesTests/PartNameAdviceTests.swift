import FileSystem
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Advice on batches whose names look like those of parts.
@Suite struct PartNameAdviceTests {
  /// A batch of five seconds.
  private func batch(
    _ path: String, second: Double, session: String? = nil, isSaidByName: Bool = true
  ) throws -> Batch {
    let startMs = 1_767_859_512_000 + Int64(second * 1_000)
    let name = session ?? lastComponent(of: path)
    var batch = Batch(
      name: lastComponent(of: path), session: try #require(SessionID(name)), intervalMs: 1_000, endMs: startMs + 5_000,
      capture: .interval, isFinal: false, frames: [Frame(source: "1.jpg", path: "1.jpg", timeMs: startMs)], refused: [],
      warnings: [], metadata: .object([:]))
    if isSaidByName { batch.namesake = path }
    return batch
  }

  /// The advice on batches that follow each other.
  private func advice(_ paths: [String], every seconds: Double = 5) throws -> String? {
    var advice = PartNameAdvice()
    for (index, path) in paths.enumerated() { advice.add(try batch(path, second: Double(index) * seconds)) }
    return advice.text
  }

  @Test(arguments: [
    (["s01-0", "s01-1", "s01-2"], "{session}-{part}", "s01"), (["a_001", "a_002", "a_003"], "{session}_{part}", "a"),
    (["cam8", "cam9", "cam10"], "{session}{part}", "cam"),
    (["x.part1", "x.part2", "x.part3"], "{session}.part{part}", "x"),
    (["b_Part-1", "b_Part-2", "b_Part-3"], "{session}_Part-{part}", "b"),
    (["front-door-1", "front-door-2", "front-door-3"], "{session}-{part}", "front-door"),
    (["part-1", "part-2", "part-3"], "{session}-{part}", "part"),
    (["s01/0", "s01/1", "s01/2"], "{session}/{part}", "s01"),
    (["in/s01/7/", "in/s01/8", "in/s01/9"], "{session}/{part}", "s01"),
    (["in/s-1", "in/s-2", "in/s-3"], "{session}-{part}", "s"),
    (["k-1767859512000", "k-1767859517000", "k-1767859522000"], "{session}-{part}", "k"),
  ])
  func adviceIsAPatternThatJoinsTheNames(names: [String], pattern: String, session: String) throws {
    let text = try #require(try advice(names))
    #expect(text.contains("3 batches whose names differ only in a trailing number are 3 sessions"), "\(text)")
    #expect(text.contains("--session-from '\(pattern)', ") && text.hasSuffix(" are one session, \(session)"), "\(text)")
    let read = try SessionPattern(pattern)
    #expect(names.allSatisfy { read.session(in: $0.hasSuffix("/") ? String($0.dropLast()) : $0) == session })
  }

  @Test(arguments: [
    ["s01-0", "s01-1"], ["s01-0", "s02-1", "s03-2"], ["s01-0", "s01-0", "s01-0"], ["a", "b", "c"], ["0", "1", "2"],
    // Names that `enqueue` and `collect` write, and others that say the session.
    ["s@0", "s@1", "s@2"], ["s-1@7", "s-2@7", "s-3@7"],
    // A session a day.
    ["k-2026-11-25", "k-2026-11-26", "k-2026-11-27"], ["k_20261125", "k_20261126", "k_20261127"],
    // No session could be named so.
    [".-1", ".-2", ".-3"], ["in/a b/1", "in/a b/2", "in/a b/3"],
  ])
  func otherNamesGetNone(names: [String]) throws {
    var advice = PartNameAdvice()
    for (index, name) in names.enumerated() {
      advice.add(try batch(name, second: Double(index) * 5, session: "any-\(index)"))
    }
    #expect(advice.text == nil)
  }

  @Test func partsFollowEachOtherWithinAnHour() throws {
    #expect(try advice(["s-0", "s-1", "s-2"], every: 3_604) != nil)
    #expect(try advice(["s-0", "s-1", "s-2"], every: 3_606) == nil)
    // Less than half an interval is a seam; more would be a conflict.
    #expect(try advice(["s-0", "s-1", "s-2"], every: 4.501) != nil)
    #expect(try advice(["s-0", "s-1", "s-2"], every: 4.5) == nil)
    #expect(try advice(["kiosk-1", "kiosk-2", "kiosk-3"], every: 4) == nil)
    #expect(try advice(["kiosk-1", "kiosk-2", "kiosk-3"], every: 0) == nil)
  }

  @Test func batchesThatSayTheirSessionsAreNotCounted() throws {
    var advice = PartNameAdvice()
    for index in 0..<5 {
      advice.add(try batch("s-\(index)", second: Double(index) * 5, isSaidByName: index < 2))
    }
    #expect(advice.text == nil)
  }

  @Test func recordingsAreCounted() throws {
    var advice = PartNameAdvice()
    for index in 0..<4 { advice.add(try batch("s02-\(index)", second: Double(index) * 5)) }
    for index in 0..<3 { advice.add(try batch("s01-\(index)", second: 300 + Double(index) * 5)) }
    // Two screens of one batch are one batch.
    for key in ["m1", "m2"] { advice.add(try batch("s02-9", second: 45, session: "s02-9.\(key)")) }
    advice.add(try batch("other_1", second: 0))
    #expect(
      advice.text
        == "8 batches whose names differ only in a trailing number are 9 sessions; if they are parts of 2 recordings, "
        + "join them: with --session-from '{session}-{part}', s02-0 and s02-1 are one session, s02")
  }

  @Test func memoryIsBoundedAndTheNewestBatchesAreRemembered() throws {
    var advice = PartNameAdvice()
    for index in 0..<3_000 { advice.add(try batch("n\(index % 2 == 0 ? "x" : "y")\(index)-1", second: 0)) }
    #expect(advice.text == nil)
    for index in 0..<2_000 { advice.add(try batch("s-\(index)", second: Double(index) * 5)) }
    #expect(try #require(advice.text).hasPrefix("1000 batches "))
  }

  /// A worker looks for advice at the third batch, and then rarely.
  @Test func adviceIsLookedForRarely() throws {
    var advice = PartNameAdvice()
    let looks = try (1...64).filter { advice.add(try batch("s-\($0)", second: Double($0) * 5)) }
    #expect(looks == [3, 4, 8, 16, 32, 64])
  }
}
