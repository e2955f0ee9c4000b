import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Custom events, breadcrumbs and console lines of rrweb become labels.
@Suite struct RRWebLabelTests {
  private static let start: Int64 = 1_767_859_512_340

  /// Reads a recording of one picture and an event.
  private func label(_ type: Int64, _ data: String) throws -> Label? {
    let event = #"{"type":\#(type),"timestamp":\#(Self.start),"data":\#(data)}"#
    let labels = try recording([event])
    #expect(labels.count <= 1)
    return labels.first
  }

  private func recording(_ events: [String]) throws -> [Label] {
    let scratch = try ScratchDirectory()
    let image = Data(try BatchTests.jpeg).base64EncodedString()
    let wireframe =
      #"{"id":1,"x":0,"y":0,"width":180,"height":320,"type":"screenshot","base64":"data:image/jpeg;base64,\#(image)"}"#
    let picture = #"{"type":2,"timestamp":\#(Self.start),"data":{"wireframes":[\#(wireframe)]}}"#
    let text = "[\((events + [picture]).joined(separator: ","))]"
    return try BatchSessions(reading: scratch.file("s.json", Array(text.utf8))).readers[0].batch.labels
  }

  @Test(arguments: [
    (5, #"{"tag":"add-to-cart","payload":{"card":"4111"}}"#, "mark", "add-to-cart", 0),
    (5, #"{"tag":"$pageview","payload":{"href":"https://a.example/b?token=1"}}"#, "page", "https://a.example/b", 0),
    (
      5, #"{"tag":"breadcrumb","payload":{"timestamp":1767859512.84,"category":"ui.tap","message":".pay"}}"#, "mark",
      "ui.tap .pay", 500
    ),
    (
      5, #"{"tag":"breadcrumb","payload":{"timestamp":1767859512.84,"category":"navigation","data":{"to":"/a?b"}}}"#,
      "page", "/a", 500
    ),
    (
      5, #"{"tag":"breadcrumb","payload":{"category":"console","level":"error","message":"no\nsecond"}}"#, "error",
      "no",
      0
    ),
    (
      5,
      #"{"tag":"performanceSpan","payload":{"op":"navigation.push","description":"/x","startTimestamp":1767859513.34}}"#,
      "page", "/x", 1_000
    ),
    (
      6, #"{"plugin":"rrweb/console@1","payload":{"level":"warn","payload":["\"careful\"","5"]}}"#, "log", "careful 5",
      0
    ),
    (
      6, #"{"plugin":"rrweb/console@1","payload":{"level":"error","payload":["\"bad https:\/\/a\/?q\""]}}"#, "error",
      "bad https://a/…", 0
    ),
  ])
  func eventBecomesALabel(_ type: Int64, _ data: String, _ kind: String, _ text: String, _ offsetMs: Int64) throws {
    let label = try #require(try label(type, data))
    #expect(label.kind == kind && label.text == text && label.timeMs == Self.start + offsetMs, "\(label)")
    #expect(label.data == nil)
  }

  @Test(arguments: [
    (5, #"{"tag":"$posthog_config","payload":{}}"#), (5, #"{"tag":"video"}"#), (5, #"{"tag":"options"}"#), (5, "{}"),
    (5, #"{"tag":"breadcrumb","payload":{"category":"fetch","message":"GET /?token"}}"#),
    (5, #"{"tag":"breadcrumb","payload":{"category":"ui.tap"}}"#),
    (5, #"{"tag":"performanceSpan","payload":{"op":"resource.img","description":"/x","startTimestamp":1767859513}}"#),
    (6, #"{"plugin":"other","payload":{"level":"error","payload":["x"]}}"#),
    (6, #"{"plugin":"rrweb/console@1","payload":{"level":"error","payload":[]}}"#),
    (3, #"{"source":5,"text":"s3cret"}"#),
  ])
  func otherEventsAreNone(_ type: Int64, _ data: String) throws { #expect(try label(type, data) == nil) }

  @Test func recordingHasItsLabels() throws {
    let events = [(250, "paid"), (100, "first")].map { offsetMs, tag in
      #"{"type":5,"timestamp":\#(Self.start + Int64(offsetMs)),"data":{"tag":"\#(tag)","payload":{}}}"#
    }
    let labels = try recording(events)
    #expect(labels.map(\.text) == ["first", "paid"] && labels.map { $0.timeMs - Self.start } == [100, 250])
  }
}
