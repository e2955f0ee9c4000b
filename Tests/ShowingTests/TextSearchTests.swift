import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import Sessions
@testable import Showing

/// The search for words, in files that a test writes.
@Suite struct TextSearchTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func session(_ name: String) throws -> SessionDirectory {
    _ = try scratch.directory(name)
    return SessionDirectory(output: scratch.path, session: try #require(SessionID(name)))
  }

  private struct Word {
    let text: String
    let shownMs: Range<Int64>
    var x = 10
  }

  /// Writes the words of a segment of five seconds, and its manifest.
  private func write(_ words: [Word], of session: SessionDirectory, at startMs: Int64) throws {
    let text = SegmentText(
      session: session.session, startMs: startMs, endMs: startMs + 5_000, sha256: "", engine: "tesseract 5",
      language: "eng", pictures: 1, unreadMs: [], leftOut: 0,
      words: words.map {
        VisibleWord(
          text: $0.text, box: PictureRegion(x: $0.x, y: 20, width: 30, height: 10), confidence: 90, shownMs: $0.shownMs)
      })
    let name = session.session.description
    try scratch.file(name + "/" + SegmentName.text(startMs), text.bytes)
    try writeManifest(of: session, at: startMs, sha256: "")
  }

  private func writeManifest(
    of session: SessionDirectory, at startMs: Int64, sha256: String, labels: String = ""
  ) throws {
    let frame = #"{"timeMs":\#(startMs),"holdMs":5000,"status":"captured"}"#
    let json =
      #"{"format":"\#(PublishedSegment.format)","batch":"a","batchDigest":"a","part":1,"parts":1,"#
      + #""file":"\#(SegmentName.video(startMs))","startMs":\#(startMs),"endMs":\#(startMs + 5_000),"width":2,"height":2,"#
      + #""codedWidth":2,"codedHeight":2,"bytes":1,"sha256":"\#(sha256)","samples":1,"frames":[\#(frame)],"#
      + #""intervalMs":1000,"gapAfterMs":0,"final":false\#(labels)}"#
    try scratch.file("\(session.session)/" + SegmentName.manifest(startMs), Array(json.utf8))
  }

  private func search(
    _ text: String, in sessions: SessionDirectory..., bounds: TextSearch.Bounds = TextSearch.Bounds()
  ) throws -> TextAnswer {
    try TextSearch.answer(to: #require(TextQuery(text)), in: sessions, bounds) { $0 }
  }

  private func found(_ answer: TextAnswer) -> [String] {
    answer.results.map { "\($0.session) \($0.text) \($0.startMs)-\($0.untilMs)" }
  }

  @Test func wordIsFoundByItsBeginningInAnyCase() throws {
    let one = try session("one")
    try write(
      [
        Word(text: "(Order)", shownMs: 1_000..<6_000), Word(text: "reorder", shownMs: 1_000..<6_000, x: 90),
        Word(text: "STRASSE", shownMs: 3_000..<6_000, x: 200), Word(text: "Ünder", shownMs: 4_000..<6_000, x: 300),
        Word(text: "bob@example.com", shownMs: 2_000..<6_000, x: 400),
      ],
      of: one, at: 1_000)
    #expect(try found(search("ORD", in: one)) == ["one (Order) 1000-6000"])
    #expect(try found(search("order,", in: one)) == ["one (Order) 1000-6000"])
    #expect(try found(search("strasse", in: one)) == ["one STRASSE 3000-6000"])
    #expect(try found(search("ün", in: one)) == ["one Ünder 4000-6000"])
    #expect(try found(search("example", in: one)) == ["one bob@example.com 2000-6000"])
    #expect(try found(search("ample", in: one)) == [])
  }

  @Test(arguments: ["", "  ", "- , .", String(repeating: "a", count: 257), "a b c d e f g h i"])
  func queryHasSomeWords(_ text: String) { #expect(TextQuery(text) == nil) }

  /// Labels are found without words of pictures, and in the order of the words.
  @Test func labelsAreFoundAsWords() throws {
    let (one, two) = (try session("one"), try session("two"))
    let labels =
      #","labels":[{"timeMs":900,"kind":"step","text":"Add the order"},"#
      + #"{"timeMs":1500,"endMs":2500,"kind":"error","text":"order <b>40</b> failed","level":"error"}]"#
    try writeManifest(of: one, at: 1_000, sha256: "", labels: labels)
    try writeManifest(of: one, at: 6_000, sha256: "")
    #expect(
      try found(search("ORD", in: one, two)) == [
        "one Add the order 900-900", "one order <b>40</b> failed 1500-2500",
      ])
    #expect(try found(search("order 40", in: one)) == ["one order <b>40</b> failed 1500-2500"])
    #expect(try found(search("order cart", in: one)) == [] && found(search("labels", in: one)) == [])
    let answer = try search("failed", in: one)
    #expect(answer.segments == 1 && answer.incomplete == 1 && answer.notSearched == 0)
    let json = try #require(answer.results.first?.json.object)
    #expect(json["kind"]?.string == "error" && json["level"]?.string == "error" && json["x"] == nil)
    #expect(json["url"]?.string == "/sessions/one/#t=1500" && json["unixMs"]?.integer == 1_500)
    // Labels that came later lie in a file of their own.
    let later =
      #"{"file":"segment-0000000001000.mp4","format":"segment-labels/1","labels":"#
      + #"[{"kind":"mark","text":"late remark","timeMs":1700}],"session":"one"}"#
    try Data(later.utf8).write(to: URL(fileURLWithPath: one.path + "/" + SegmentName.labels(1_000)))
    #expect(try found(search("remark", in: one)) == ["one late remark 1700-1700"])
    try FileManager.default.removeItem(atPath: one.path + "/" + SegmentName.labels(1_000))
    // A word of a picture between both; and the bound counts manifests.
    try write([Word(text: "Order", shownMs: 1_200..<6_000)], of: two, at: 1_000)
    try writeManifest(of: two, at: 1_000, sha256: "", labels: labels)
    #expect(
      try found(search("order", in: two)) == [
        "two Add the order 900-900", "two Order 1200-6000", "two order <b>40</b> failed 1500-2500",
      ])
    var bounds = TextSearch.Bounds()
    bounds.segments = 1
    #expect(try search("order", in: one, two, bounds: bounds).notSearched == 2)
  }

  @Test func wordThatStaysIsFoundOnceAtItsFirstInstant() throws {
    let one = try session("one")
    try write([Word(text: "Total", shownMs: 2_500..<6_000)], of: one, at: 1_000)
    try write([Word(text: "Total", shownMs: 6_000..<11_000, x: 12)], of: one, at: 6_000)
    try write([Word(text: "Total", shownMs: 11_000..<12_000)], of: one, at: 11_000)
    // It goes and comes again; and it is at another place.
    try write(
      [Word(text: "Total", shownMs: 17_000..<21_000), Word(text: "Total", shownMs: 16_000..<21_000, x: 200)], of: one,
      at: 16_000)
    #expect(
      try found(search("total", in: one)) == ["one Total 2500-12000", "one Total 16000-21000", "one Total 17000-21000"])
  }

  /// Nobody knows what a segment without words showed.
  @Test func wordOnBothSidesOfASegmentWithoutWordsIsTwoResults() throws {
    let one = try session("one")
    try write([Word(text: "Total", shownMs: 1_000..<6_000)], of: one, at: 1_000)
    try writeManifest(of: one, at: 6_000, sha256: "")
    try write([Word(text: "Total", shownMs: 11_000..<16_000)], of: one, at: 11_000)
    #expect(try found(search("total", in: one)) == ["one Total 1000-6000", "one Total 11000-16000"])
  }

  @Test func wordsOfAnEarlierVideoAreNotFound() throws {
    let one = try session("one")
    try write([Word(text: "Total", shownMs: 1_000..<6_000)], of: one, at: 1_000)
    try writeManifest(of: one, at: 1_000, sha256: "another")
    let answer = try search("total", in: one)
    #expect(answer.results.isEmpty && answer.incomplete == 1)
  }

  @Test func casesAndLigaturesAreOne() throws {
    let one = try session("one")
    let words = ["Straße", "o\u{FB03}ce", "İstanbul", "ISPARTA", "ılık", "\u{212A}elvin"]
    try write(
      words.enumerated().map { Word(text: $1, shownMs: 1_000..<6_000, x: 100 * $0) }, of: one, at: 1_000)
    for (query, word) in [
      ("STRASSE", words[0]), ("strasse", words[0]), ("straß", words[0]), ("office", words[1]), ("istanbul", words[2]),
      ("İSTANBUL", words[2]), ("ısparta", words[3]), ("ilik", words[4]), ("ILIK", words[4]), ("kelvin", words[5]),
    ] {
      #expect(try found(search(query, in: one)) == ["one \(word) 1000-6000"], "\(query)")
    }
  }

  @Test func allWordsAreVisibleAtTheInstant() throws {
    let one = try session("one")
    try write(
      [Word(text: "order", shownMs: 1_000..<3_000), Word(text: "number", shownMs: 3_000..<6_000, x: 90)], of: one,
      at: 1_000)
    #expect(try found(search("order number", in: one)) == [])
    try write(
      [Word(text: "order", shownMs: 6_500..<9_000), Word(text: "number", shownMs: 8_000..<11_000, x: 90)], of: one,
      at: 6_000)
    #expect(try found(search("order number", in: one)) == ["one number 8000-11000"])
  }

  @Test func answerSaysWhatWasNotSearched() throws {
    let (one, two) = (try session("one"), try session("two"))
    for index in 0..<4 {
      let startMs = Int64(1_000 + 5_000 * index)
      try write([Word(text: "x\(index)", shownMs: startMs..<startMs + 5_000)], of: one, at: startMs)
      try write([Word(text: "x", shownMs: startMs..<startMs + 1_000)], of: two, at: startMs)
    }
    let all = try search("x", in: one, two)
    #expect(all.results.count == 8 && all.sessions == 2 && all.segments == 8 && all.notSearched == 0 && !all.hasMore)
    var bounds = TextSearch.Bounds()
    bounds.segments = 2
    let few = try search("x", in: one, two, bounds: bounds)
    #expect(few.results.count == 2 && few.segments == 2 && few.notSearched == 2)
    bounds = TextSearch.Bounds()
    bounds.results = 3
    let short = try search("x", in: one, two, bounds: bounds)
    #expect(short.results.count == 3 && short.hasMore && short.notSearched == 1)
    bounds = TextSearch.Bounds()
    bounds.sessions = 1
    #expect(try search("x", in: one, two, bounds: bounds).notSearched == 1)
    bounds = TextSearch.Bounds()
    bounds.bytes = 1
    #expect(try search("x", in: one, two, bounds: bounds).segments == 1)
  }

  @Test func sessionsWithoutAllWordsAreCounted() throws {
    let (one, two) = (try session("one"), try session("two"))
    try write([Word(text: "x", shownMs: 1_000..<6_000)], of: one, at: 1_000)
    try scratch.file("one/" + SegmentName.manifest(6_000), [])
    try write([Word(text: "x", shownMs: 1_000..<6_000)], of: two, at: 1_000)
    let answer = try search("x", in: one, two)
    #expect(answer.results.count == 2 && answer.incomplete == 1)
    // A file that is no such file has no words.
    try scratch.file("two/" + SegmentName.text(1_000), Array("x".utf8))
    let damaged = try search("x", in: one, two)
    #expect(damaged.results.count == 1 && damaged.incomplete == 2)
    // Words without a manifest are of a segment that is gone.
    try FileManager.default.removeItem(atPath: scratch.path("one/" + SegmentName.manifest(1_000)))
    #expect(try search("x", in: one).results.isEmpty)
  }
}
