import Encoding
import FrameBatches
import ISOMedia
import JSON
import Sessions
import TestSupport
import Testing

@testable import Films

/// Which labels a film shows, and when.
@Suite struct FilmCaptionTests {
  private static let start: Int64 = 1_767_859_512_340

  private func label(_ offsetMs: Int64, _ text: String, kind: String = "step", endMs: Int64? = nil) throws -> Label {
    try #require(
      Label(timeMs: Self.start + offsetMs, endMs: endMs.map { Self.start + $0 }, kind: kind, text: text))
  }

  private func map(_ lengthMs: Int64) -> FilmMap {
    let range = Self.start..<Self.start + lengthMs
    return FilmMap([FilmMap.Piece(film: 0..<lengthMs, unix: range)], shown: range, speed: .normal)
  }

  private func cues(_ labels: [Label], lengthMs: Int64 = 60_000, isWhole: Bool = true) -> [String] {
    FilmCaptions(labels, in: Self.start..<Self.start + lengthMs, isWhole: isWhole).captions.map {
      "\($0.unix.lowerBound - Self.start)–\($0.unix.upperBound - Self.start) \($0.text)"
    }
  }

  @Test func stepsAreShownUntilTheNextOneAndCaptionsForTheirSpan() throws {
    #expect(
      try cues([
        label(0, "a"), label(2_000, "b", endMs: 12_000), label(3_000, "c"),
        label(9_000, "d", kind: "caption", endMs: 9_100),
        label(9_050, "e", kind: "log"), label(20_000, "f", kind: "error"),
      ]) == ["0–2000 a", "2000–12000 b", "3000–8000 c", "9000–9100 d", "20000–25000 f"])
  }

  @Test func labelsOfOneInstantAreShownTogether() throws {
    #expect(try cues([label(0, "a"), label(0, "b"), label(500, "c")]) == ["0–500 a", "0–500 b", "500–5500 c"])
  }

  @Test func labelsWithoutAPictureAreShownAtTheEdges() throws {
    let labels = try [label(-9_000, "before"), label(1_000, "in"), label(60_000, "at the end"), label(90_000, "after")]
    #expect(cues(labels) == ["0–1000 before", "1000–6000 in", "55000–60000 at the end", "55000–60000 after"])
    #expect(cues(labels, isWhole: false) == ["1000–6000 in"])
    #expect(cues(labels, lengthMs: 2_000) == ["0–1000 before", "0–2000 at the end", "0–2000 after", "1000–2000 in"])
    #expect(cues(labels, lengthMs: 0) == [])
  }

  /// Samples fill the film, whatever lies in it, and none is longer than readers can count.
  @Test(arguments: [1_000, 60_000, 172_800_000]) func samplesFillTheFilm(lengthMs: Int64) throws {
    let labels = try (0..<200).map { number in
      try label(Int64(number) * lengthMs / 300, "\(number)", endMs: Int64(number) * lengthMs / 300 + lengthMs / 2)
    }
    let captions = FilmCaptions(labels, in: Self.start..<Self.start + lengthMs, isWhole: true)
    let samples = captions.samples(map(lengthMs))
    #expect(samples.reduce(0) { $0 + $1.duration } == MediaTime.ticks(ms: lengthMs))
    #expect(samples.allSatisfy { $0.duration > 0 && $0.duration <= Int64(Int32.max) })
    for sample in samples {
      #expect(sample.data.count == 2 + Int(sample.data[0]) << 8 + Int(sample.data[1]))
      // At most three texts.
      #expect(sample.data.dropFirst(2).count { $0 == UInt8(ascii: "\n") } <= 2)
    }
  }

  /// A manifest of an enemy.
  @Test(arguments: [
    #"[{"timeMs":9223372036854775807,"text":"x"}]"#, #"[{"timeMs":-9223372036854775808,"text":"x"}]"#,
    #"[{"timeMs":0,"endMs":9223372036854775807,"text":"x"}]"#, #"[{"timeMs":0,"text":""}]"#, "[]", "{}",
    #"[{"timeMs":2,"text":"x"},{"timeMs":1,"text":"x"}]"#,
  ])
  func labelsThatNobodyWroteAreNoCaptions(_ text: String) throws {
    let json = try JSONParser.parse(Array(#"{"labels":\#(text)}"#.utf8))
    var marks = SessionMarks()
    marks.add(json, of: .made(1_000, 5_000))
    #expect(marks.labels.isEmpty)
  }
}
