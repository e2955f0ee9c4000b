import FileSystem
import FrameBatches
import TestSupport
import Testing

@testable import Films

/// The clip around a label: which label is meant, and where the clip ends.
@Suite struct LabelPartTests {
  private static let start: Int64 = 1_767_859_512_340

  private let labels: [Label]
  private let session: SessionID

  init() throws {
    session = try #require(SessionID("walk"))
    labels = try [
      Self.label(-2_000, "Before"), Self.label(1_000, "Add to cart", endMs: 3_000),
      Self.label(2_000, "warm", kind: "log"),
      Self.label(5_000, "Pay"), Self.label(6_000, "Pay again"), Self.label(9_000, "Retry"), Self.label(12_000, "retry"),
    ]
  }

  private static func label(_ ms: Int64, _ text: String, kind: String = "step", endMs: Int64? = nil) throws -> Label {
    try #require(Label(timeMs: start + ms, endMs: endMs.map { start + $0 }, kind: kind, text: text))
  }

  @Test(arguments: [
    // The label's span, the next one of its kind, and ten seconds.
    (words: "add TO", fromMs: 1_000, toMs: 3_000, others: 0), (words: "pay", fromMs: 5_000, toMs: 6_000, others: 0),
    (words: "WARM", fromMs: 2_000, toMs: 12_000, others: 0), (words: "again", fromMs: 6_000, toMs: 9_000, others: 0),
    // Of one text the first; and one before the first picture is at that.
    (words: "retry", fromMs: 9_000, toMs: 12_000, others: 1), (words: "Before", fromMs: 0, toMs: 3_000, others: 0),
  ])
  func clipIsThatOfTheLabel(words: String, fromMs: Int64, toMs: Int64, others: Int) throws {
    let part = try LabelPart(words, in: labels, of: session, startMs: Self.start)
    #expect(part.fromMs - Self.start == fromMs && part.toMs - Self.start == toMs && part.others.count == others)
  }

  @Test func severalTextsAndNoneAreNamedWithTheirInstants() throws {
    let several = #expect(throws: Failure.self) {
      try LabelPart("pa", in: labels, of: session, startMs: Self.start)
    }
    #expect(several?.kind == .input)
    for text in ["2 labels have 'pa'", "'Pay' at 2026-01-08T08:05:17.340Z (1767859517340)", "'Pay again' at"] {
      #expect("\(several.map { "\($0)" } ?? "")".contains(text), "\(text)")
    }
    let none = #expect(throws: Failure.self) {
      try LabelPart("gone", in: labels, of: session, startMs: Self.start)
    }
    #expect(none.map { "\($0)".contains("no label has 'gone'") && "\($0)".contains("'Add to cart' at") } ?? false)
    let bare = #expect(throws: Failure.self) { try LabelPart("x", in: [], of: session, startMs: Self.start) }
    #expect(bare.map { "\($0)".contains("it has no labels") } ?? false)
    let many = try (0..<30).map { try Self.label($0, "step \($0)") }
    let cut = #expect(throws: Failure.self) { try LabelPart("step", in: many, of: session, startMs: Self.start) }
    #expect(cut.map { "\($0)".contains("and 20 others") } ?? false)
  }
}
