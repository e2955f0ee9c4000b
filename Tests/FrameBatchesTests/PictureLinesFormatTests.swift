import TestSupport
import Testing

@testable import FrameBatches

/// JSON of home-made recorders: a time and a picture in each record.
@Suite struct PictureLinesFormatTests {
  private static let start: Int64 = 1_767_859_512_340
  private static let picture = "data:image/png;base64," + RRWebTests.pixel

  private func read(_ text: String, zone: String? = nil) throws -> BatchDraft? {
    var source = BatchSource(name: "b", contents: StreamContents(.memory(Array(text.utf8))), session: "b")
    source.options.timeZone = zone.flatMap { ZoneRules(offset: $0) }
    return try PictureLinesFormat.read(source, limits: Limits())?.first
  }

  private func line(_ time: String, _ picture: String = Self.picture) -> String {
    #"{\#(time),"page":{"url":"https://shop.example/"},"screenshot":"\#(picture)"}"#
  }

  @Test(arguments: [
    #""timestamp":1767859512340"#, #""t":"1767859512340""#, #""ts":1767859512.34"#, #""timeMs":1767859512340.4"#,
    #""time":1767859512340000"#, #""Timestamp":1767859512340000000"#, #""time":"2026-01-08T08:05:12.340Z""#,
    #""timestamp":1767859512340,"time":"2026-01-08T09:05:12.340+01:00""#, #""t":3.5,"timestamp":1767859512340"#,
  ])
  func timeIsReadInItsOwnUnit(time: String) throws {
    let draft = try #require(try read("\(line(time))\n{\"event\":\"click\"}\n\(line(time))\n"))
    #expect(draft.frames.map(\.timeMs) == [Self.start, Self.start] && draft.refused.isEmpty)
    #expect(try read("[\(line(time)),\(line(time))]")?.frames.count == 2)
  }

  @Test func localTimeNeedsAZone() throws {
    let local = line(#""time":"2026-01-08T09:05:12.340""#)
    #expect(throws: BadBatch.self) { try read(local) }
    #expect(try read(local, zone: "+01:00")?.frames.map(\.timeMs) == [Self.start])
  }

  @Test func picturesAreDataURLsOrTheirBase64() throws {
    let escaped = Self.picture.replacing("/", with: #"\/"#)
    for picture in [Self.picture, escaped, RRWebTests.pixel] {
      let text = line(#""t":\#(Self.start)"#, picture)
      let contents = StreamContents(.memory(Array(text.utf8)))
      let frame = try #require(try read(text)?.frames.first)
      guard case .bytes(let bytes)? = try contents.contents(of: frame.paths[0], limit: 1 << 20) else {
        Issue.record("the picture is not read")
        return
      }
      #expect(ImageKind(of: bytes) == .png)
    }
  }

  @Test(arguments: [
    (#""offset":5"#, "a picture without a \"timestamp\""),
    (#""t":5"#, "a picture whose time is no instant since 2001 with a zone"),
    (#""t":1767859512340,"time":1767859512341"#, "a picture of several times"),
    (#""t":1767859512340,"before":"\#(picture)""#, "2 pictures in one record"),
  ])
  func recordWithoutOneTimeAndOnePictureIsRefused(start: String, reason: String) throws {
    let good = line(#""t":\#(Self.start)"#)
    let draft = try #require(try read("\(good)\n\(line(start))\n\(good)\n"))
    #expect(draft.frames.count == 2 && draft.refused == [RefusedFrame(source: "b#1", reason: reason)])
    // Most records decide.
    let bad = #expect(throws: BadBatch.self) { try read("\(good)\n\(line(start))\n\(line(start))\n") }
    #expect(bad?.cause == "JSON with pictures; b#1: \(reason)")
    #expect(bad?.advice.contains("POST them to /v1/sessions/ID/frames") == true)
  }

  @Test func otherJSONHasNoPictures() throws {
    #expect(try read(#"{"t":1767859512340,"text":"\#(String(repeating: "a", count: 100))"}"#) == nil)
    #expect(try read("{}\n[1,2]\n{") == nil)
  }
}
