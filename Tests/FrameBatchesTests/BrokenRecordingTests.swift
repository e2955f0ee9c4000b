import Foundation
import TestSupport
import Testing

@testable import FrameBatches

/// JSON recordings with reordered or broken events, or above the limits.
@Suite struct BrokenRecordingTests {
  @Test func reorderedAndDuplicateEventsGiveTheSameFrames() throws {
    let events = (0..<5).map { RRWebTests.snapshot($0) }
    let straight = try RRWebTests.batch("[\(events.joined(separator: ","))]")
    let shuffled = try RRWebTests.batch("[\([3, 0, 4, 2, 1].map { events[$0] }.joined(separator: ","))]")
    #expect(RRWebTests.seconds(of: straight) == [0, 1, 2, 3, 4])
    #expect(RRWebTests.seconds(of: shuffled) == RRWebTests.seconds(of: straight))
    let twice = try RRWebTests.batch("[\((events + events).joined(separator: ","))]")
    #expect(RRWebTests.seconds(of: twice) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
  }

  /// The reader keeps all events before the truncation and reports the rest.
  @Test func truncatedRecordingKeepsItsCompleteEvents() throws {
    let events = (0..<3).map { RRWebTests.snapshot($0) }
    let shapes = [
      "[\(events.joined(separator: ","))]", events.joined(separator: "\n"),
      #"{"data":{"snapshots":[\#(events.joined(separator: ","))]}}"#,
      #"{"data":{"snapshotsByWindowId":{"w":[\#(events.joined(separator: ","))]}}}"#,
    ]
    for text in shapes {
      let whole = try RRWebTests.batch(text)
      #expect(RRWebTests.seconds(of: whole) == [0, 1, 2] && whole.refused.isEmpty)
      for count in stride(from: text.utf8.count - 1, to: 0, by: -3) {
        let batch = try RRWebTests.read(Array(text.utf8.prefix(count)))?.readers[0].batch
        let kept = events.indices.filter { text.utf8.count(before: events[$0]) + events[$0].utf8.count <= count }.count
        #expect(batch.map(RRWebTests.seconds) ?? [] == Array(0..<Int64(kept)), "\(count)")
        guard let batch, kept < 3 || !text.contains("\n") else { continue }
        #expect(batch.refused.count <= 1)
        #expect(batch.refused.allSatisfy { $0.reason.contains("breaks off at byte \(count)") })
      }
    }
  }

  @Test func requestWhoseSessionIsCutOffIsRefused() throws {
    let text =
      RRWebTests.request("one", [RRWebTests.snapshot(0)]) + "\n"
      + #"{"properties":{"$snapshot_data":[\#(RRWebTests.snapshot(1))],"$session_id":"o"#
    let batch = try RRWebTests.batch(text)
    #expect(RRWebTests.seconds(of: batch) == [0])
    #expect(batch.refused.map(\.reason).last == "1 events of a request that cannot be read")
  }

  /// The reader refuses a bad event between good ones and reports a reason.
  @Test(arguments: [
    (#"{"type":2,"timestamp":NaN,"data":{}}"#, "timestamp: not a whole number"),
    (#"{"type":2,"timestamp":1e400,"data":{}}"#, "timestamp: not a whole number"),
    (#"{"type":2,"timestamp":"1767859512340","data":{}}"#, "timestamp: not a whole number"),
    (#"{"type":2,"timestamp":1,"data":{"a":1,"a":2}}"#, #"not JSON: a second "a" in the event at byte "#),
    (#"{"type":2,"timestamp":1,"data":{"a":tru}}"#, "not JSON: no value in the event at byte "),
    (
      #"{"type":2,"timestamp":1,"data":{"wireframes":[{"type":"screenshot","id":1}]}}"#, "a screenshot without an image"
    ),
    (#"{"type":2,"timestamp":1,"data":{"wireframes":[{"type":"screenshot"}]}}"#, "a screenshot without an id"),
    ("{\"type\":\u{1}2}", "not JSON: no value in the event at byte "),
  ])
  func badEventIsRefusedAndTheOthersKept(event: String, reason: String) throws {
    for text in [
      "[\(RRWebTests.snapshot(0)),\(event),\(RRWebTests.snapshot(1))]",
      "\(RRWebTests.snapshot(0))\n\(event)\n\(RRWebTests.snapshot(1))",
    ] {
      let batch = try RRWebTests.batch(text)
      #expect(RRWebTests.seconds(of: batch) == [0, 1])
      #expect(batch.refused.map { $0.reason.hasPrefix(reason) } == [true], "\(batch.refused)")
    }
  }

  /// Titles and texts of a page are cut between the halves of an emoji, and editors put a mark before a text.
  @Test func halfACharacterOrAMarkInATextThatIsNotReadLosesNoEvent() throws {
    func event(_ second: Int64, _ title: String) -> String {
      RRWebTests.snapshot(second).replacingOccurrences(of: #""data":{"#, with: #""data":{"title":"\#(title)","#)
    }
    let mark = "\u{FEFF}"
    for text in [
      "[\(event(0, #"\ud83d"#)),\(event(1, #"\ude00 x"#))]",
      "\(event(0, #"\ud83d\u0041"#))\n\(event(1, "x"))",
      mark + "[\(event(0, "")),\(event(1, ""))]", mark + event(0, "") + "\n" + mark + event(1, ""),
      mark + RRWebTests.request("one", [event(0, #"\ud83d"#), event(1, "")]),
    ] {
      let batch = try RRWebTests.batch(text)
      #expect(RRWebTests.seconds(of: batch) == [0, 1], "\(text)")
      #expect(batch.refused == [])
    }
    // Half a pair that is not escaped is no UTF-8.
    var bytes = Array("[\(event(0, "@@@")),\(event(1, ""))]".utf8)
    let place = try #require(bytes.firstIndex(of: UInt8(ascii: "@")))
    bytes.replaceSubrange(place..<place + 3, with: [0xED, 0xA0, 0x80])
    #expect(try RRWebTests.read(bytes)?.readers[0].batch.frames.count == 2)
  }

  @Test func imageThatIsNotBase64IsRefusedWhenItIsRead() throws {
    let bad = String(repeating: "?", count: 80)
    let escaped = RRWebTests.pixel.replacingOccurrences(of: "/", with: "\\/").replacingOccurrences(
      of: "=", with: "\\u003d")
    let text =
      "[\(RRWebTests.snapshot(0, image: bad)),\(RRWebTests.snapshot(1, image: escaped)),\(RRWebTests.snapshot(2))]"
    let reader = try #require(try RRWebTests.read(text)?.readers[0])
    let images = try reader.batch.frames.map { try reader.images(of: $0)[0] }
    #expect(images.count == 3)
    guard case .refused("not an image in base64") = images[0], case .bytes(let one) = images[1],
      case .bytes(let other) = images[2]
    else {
      Issue.record("\(images)")
      return
    }
    #expect(one == other && one.starts(with: [0x89, 0x50]))
  }

  @Test func brokenLineDoesNotHideTheNext() throws {
    for bad in ["{\"type\":2,\"timestamp\":1,\"data\":{\"x\":\"abc", "[[[", "]", "hello", "{\"a\":", #""text""#, "}{"] {
      let batch = try RRWebTests.batch("\(RRWebTests.snapshot(0))\n\(bad)\n\(RRWebTests.snapshot(1))\n")
      #expect(RRWebTests.seconds(of: batch) == [0, 1], "\(bad)")
      #expect(batch.refused.count == 1, "\(bad)")
    }
  }

  @Test func deepNestingIsBounded() throws {
    func nested(_ depth: Int) -> String {
      #"{"type":5,"timestamp":1,"data":"# + String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        + "}"
    }
    // The first page has the greatest permitted depth. The second is far deeper.
    #expect(try RRWebTests.batch("[\(RRWebTests.snapshot(0)),\(nested(400))]").refused.isEmpty)
    for depth in [600, 1_000_000] {
      let batch = try RRWebTests.batch("[\(RRWebTests.snapshot(0)),\(nested(depth))]")
      #expect(RRWebTests.seconds(of: batch) == [0])
      #expect(batch.refused.map { $0.reason.hasPrefix("nested more than 512 deep at byte") } == [true])
    }
  }

  @Test func eventsAndTheirSizesAreLimited() throws {
    let tiny = String(repeating: #"{"type":5,"timestamp":1,"data":{}},"#, count: 100_000)
    let error = #expect(throws: BadBatch.self) { try RRWebTests.read("[\(tiny)\(RRWebTests.snapshot(0))]") }
    #expect(error?.cause == "more than 20000 events")
    let large = #"{"type":5,"timestamp":1,"data":[\#(String(repeating: "1,", count: 600_000))1]}"#
    let batch = try RRWebTests.batch("[\(large),\(RRWebTests.snapshot(0))]")
    #expect(batch.frames.count == 1)
    #expect(batch.refused == [RefusedFrame(source: "b#0", reason: "larger than it may be, at byte 1")])
    let windows = (0..<65).map { #"{"id":\#($0),"type":"screenshot","base64":"\#(RRWebTests.pixel)"}"# }.joined(
      separator: ",")
    let layered = try RRWebTests.batch(
      #"[\#(RRWebTests.snapshot(0)),{"type":2,"timestamp":\#(RRWebTests.start),"data":{"wireframes":[\#(windows)]}}]"#)
    #expect(layered.refused.map(\.reason) == ["65 images, more than the limit of 64"])
  }

  /// A partial picture is encoded only while the batch has all parts below it.
  @Test func partsAfterALostEventAreRefusedUntilTheNextSnapshot() throws {
    func page(_ second: Int64) -> String {
      let body = #"{"tagName":"body","childNodes":[\#(node(1))]}"#
      return
        #"{"type":2,"timestamp":\#(RRWebTests.start + 1_000 * second),"data":{"node":{"childNodes":[{"tagName":"html","#
        + #""childNodes":[\#(body)]}]}}}"#
    }
    func node(_ id: Int) -> String {
      #"{"tagName":"img","id":\#(id),"attributes":{"src":"\#(RRWebTests.pixel)","width":"1","height":"1"}}"#
    }
    func part(_ second: Int64) -> String {
      #"{"type":3,"timestamp":\#(RRWebTests.start + 1_000 * second),"data":{"source":0,"adds":[{"node":\#(node(9))}]}}"#
    }
    for lost in [#"{"type":3,"timestamp":x,"data":{}}"#, #"{"type":3,"#] {
      let lines = [page(0), part(1), lost, part(3), page(4), part(5)]
      let batch = try RRWebTests.batch(lines.joined(separator: "\n"))
      #expect(RRWebTests.seconds(of: batch) == [0, 1, 4, 5])
      #expect(batch.refused.map(\.source) == ["b#2", "b#3"])
    }
  }

  /// The reader searches the image stack at each change and compares each session with the others. Both counts need a
  /// limit.
  @Test func imagesOfAScreenAndSessionsAreLimited() throws {
    func tile(_ id: Int) -> String {
      let node = #"{"tagName":"img","id":\#(id),"attributes":{"src":"\#(RRWebTests.pixel)","width":1,"height":1}}"#
      return
        #"{"type":3,"timestamp":\#(RRWebTests.start + Int64(id)),"data":{"source":0,"adds":[{"parentId":2,"node":\#(node)}]}}"#
    }
    let tiles = try RRWebTests.batch("[\(RRWebTests.snapshot(0)),\((2..<300).map(tile).joined(separator: ","))]")
    #expect(tiles.frames.count == 64)
    let reasons = tiles.refused.map(\.reason)
    #expect(reasons.first == "65 images one on the other, more than the limit of 64")
    #expect(reasons.contains("more than 256 images one on the other"))
    #expect(reasons.last == "a part of a picture; the picture below it is not in the batch")
    let canvases = (0...1_000).map { RRWebTests.drawing($0, 0) }.joined(separator: ",")
    let error = #expect(throws: BadBatch.self) { try RRWebTests.read("[\(canvases)]") }
    #expect(error?.cause == "more than 1000 sessions")
  }

  @Test func otherJSONIsNotARecording() throws {
    for text in ["{}", "[]", "[1,2,3]", #"{"a":[1,"b"]}"#, #"[{"type":2}]"#, #"{"features":[{"type":"Feature"}]}"#] {
      #expect(try RRWebTests.read(text) == nil)
    }
  }

  /// The end of an input part falls at many positions of an event: in a key, an escape or a long string.
  @Test func eventsAreReadEquallyWithAnyInputSplit() throws {
    let long = String(repeating: #"\\\"\/\u003d"#, count: 100)
    let custom = #"{"type":5,"timestamp":1,"data":{"payload":"\#(long)","short\"key":"\\"}}"#
    let text = "\(custom),\(RRWebTests.snapshot(0))]"
    for padding in stride(from: (256 << 10) - text.utf8.count, through: 256 << 10, by: 29) {
      let bytes = Array("[".utf8) + Array(repeating: UInt8(ascii: "\n"), count: padding) + text.utf8
      let reader = try #require(try RRWebTests.read(bytes)?.readers[0])
      #expect(reader.batch.refused.isEmpty, "\(padding)")
      guard case .bytes(let image) = try reader.images(of: reader.batch.frames[0])[0] else {
        Issue.record("\(padding)")
        return
      }
      #expect(image.starts(with: [0x89, 0x50]))
    }
  }
}

extension String.UTF8View {
  /// Returns the number of bytes before a text.
  fileprivate func count(before text: String) -> Int {
    String(self).range(of: text).map { distance(from: startIndex, to: $0.lowerBound) } ?? 0
  }
}
