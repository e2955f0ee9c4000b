import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Pointer events of rrweb, and those that Sentry for Android keeps in the form of rrweb.
@Suite struct RRWebPointerTests: PointerSourceSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  // MARK: - rrweb

  private static func rrweb(_ data: String, _ second: Int64 = 0) -> String {
    #"{"type":3,"timestamp":\#(start + 1_000 * second),"data":{\#(data)}}"#
  }

  /// A snapshot in points: its picture has one pixel.
  private static func snapshot(_ area: String) -> String {
    #"{"type":2,"timestamp":\#(start),"data":{"wireframes":[{"id":1,\#(area),"type":"screenshot","#
      + #""base64":"\#(RRWebTests.pixel)"}]}}"#
  }

  private static let gesture = [
    rrweb(#""source":2,"type":7,"id":0,"x":10,"y":20,"pointerType":2,"pointerId":3"#, 1),
    rrweb(
      #""source":6,"positions":[{"x":11,"y":21,"id":0,"timeOffset":-500},{"x":12,"y":22,"timeOffset":0}],"pointerId":3"#,
      2),
    rrweb(#""source":2,"type":9,"x":13,"y":23,"pointerId":3"#, 2),
    rrweb(#""source":2,"type":10,"x":1,"y":1"#, 3), rrweb(#""source":2,"type":2,"x":1,"y":1"#, 3),
    rrweb(#""source":1,"positions":[{"x":5,"y":6,"timeOffset":-20}]"#, 4),
    rrweb(#""source":12,"positions":[{"x":7,"y":8,"timeOffset":-10}]"#, 4),
    rrweb(#""source":2,"type":1,"x":7,"y":8"#, 4), rrweb(#""source":2,"type":0,"x":7,"y":9"#, 5),
    rrweb(#""source":3,"x":1,"y":1"#, 5),
  ]
  private static let expected = [
    "1000 down 3 10.0 20.0", "1500 move 3 11.0 21.0", "2000 move 3 12.0 22.0", "2000 up 3 13.0 23.0",
    "3000 cancel 0 1.0 1.0", "3980 move 0 5.0 6.0", "3990 move 0 7.0 8.0", "4000 down 0 7.0 8.0", "5000 up 0 7.0 9.0",
  ]

  @Test func eventsOfEveryWireFormAreRead() throws {
    let all = [Self.snapshot(#""x":0,"y":0,"width":390,"height":844"#)] + Self.gesture
    let list = "[\(all.joined(separator: ","))]"
    for text in [
      list, all.joined(separator: "\n"), all.map { #"["w",\#($0)]"# }.joined(separator: "\n"),
      #"{"data":{"snapshots":\#(list)}}"#, #"{"data":{"snapshotsByWindowId":{"w":\#(list)}}}"#,
      "[\(RRWebTests.request("s", all))]",
      all.map { #"{"event":"$snapshot","properties":{"$snapshot_data":\#($0),"$session_id":"s"}}"# }
        .joined(separator: "\n"),
    ] {
      let batch = try RRWebTests.batch(text)
      #expect(Self.events(of: batch) == Self.expected, "\(text.prefix(60))")
      #expect(batch.pointers.events.allSatisfy { $0.space == .area(x: 0, y: 0, width: 390, height: 844) })
      #expect(batch.frames.count == 1)
      #expect(batch.refused == [] && batch.warnings == [])
    }
  }

  @Test func coordinatesAreInTheUnitOfTheLowestWindow() throws {
    let all = [Self.snapshot(#""x":4,"y":8,"width":100,"height":50"#), Self.gesture[0]]
    let batch = try RRWebTests.batch("[\(all.joined(separator: ","))]")
    let space = try #require(batch.pointers.events.first?.space)
    #expect(space == .area(x: 4, y: 8, width: 100, height: 50))
    #expect(try #require(space.size(of: PixelSize(width: 200, height: 100))) == (100, 50))
    #expect(space.origin == (4, 8))
  }

  @Test func coordinatesWithoutAnAreaAreInTheUnitOfTheScreenElseInPixels() throws {
    let image = Self.rrweb(#""source":0,"attributes":[{"id":28,"attributes":{"src":"\#(RRWebTests.pixel)"}}]"#)
    let screen = #"{"type":4,"timestamp":\#(Self.start),"data":{"width":393,"height":852,"href":""}}"#
    let known = try RRWebTests.batch("[\(screen),\(image),\(Self.gesture[0])]")
    #expect(known.pointers.events.map(\.space) == [.area(x: 0, y: 0, width: 393, height: 852)])
    #expect(try RRWebTests.batch("[\(image),\(Self.gesture[0])]").pointers.events.map(\.space) == [.pixels])
  }

  @Test func touchesOfAPageAreNotThoseOfItsCanvases() throws {
    let sessions = try #require(try RRWebTests.read("[\(RRWebTests.drawing(7, 0)),\(Self.gesture[0])]"))
    #expect(sessions.readers.map(\.batch.pointers) == [.none])
  }

  @Test(arguments: [
    #""source":2,"type":7,"x":1"#, #""source":2,"type":7,"x":NaN,"y":1"#, #""source":2,"type":7,"x":1e9,"y":1"#,
    #""source":6,"positions":[{"x":1,"y":2,"timeOffset":1e300}]"#,
    #""source":6,"positions":[{"x":1,"y":2,"timeOffset":NaN}]"#,
    #""source":6,"positions":[{"x":1,"y":2,"timeOffset":"0"}]"#, #""source":6,"positions":[7]"#,
    #""source":1,"positions":"# + String(repeating: "[", count: 30) + String(repeating: "]", count: 30),
  ])
  func hostileEventIsLeftOutWithAWarning(data: String) throws {
    let batch = try RRWebTests.batch("[\(RRWebTests.snapshot(0)),\(Self.rrweb(data)),\(Self.gesture[0])]")
    #expect(Self.events(of: batch) == [Self.expected[0]])
    #expect(batch.warnings.count == 1 && batch.refused == [])
  }

  @Test func eventsOfALongRecordingAreLimitedInAll() throws {
    let positions = (0..<500).map { #"{"x":1,"y":2,"timeOffset":-\#($0)}"# }.joined(separator: ",")
    let moves = (1...40).map { Self.rrweb(#""source":6,"positions":[\#(positions)]"#, Int64($0)) }
    var limits = Limits()
    limits.touches = 1_000
    let text = [RRWebTests.snapshot(0)] + moves
    var reader = RRWebReader(name: "b", limits: limits)
    try RecordScanner.scan(StreamContents(.memory(Array(text.joined(separator: "\n").utf8))), limits: limits) {
      try reader.take($0)
    }
    #expect(reader.recordings[0].entries.reduce(0) { $0 + $1.event.pointers.events.count } == 1_000)
    let batch = try RRWebTests.batch("[\(text.joined(separator: ","))]", limits: limits)
    #expect(batch.pointers.events.count <= 1_000)
    #expect(batch.warnings.first?.hasPrefix("19") == true, "\(batch.warnings)")
  }

  @Test func aThousandSessionsWithoutPicturesAreStillIgnored() throws {
    let requests = (0...1_000).map { RRWebTests.request("s\($0)", [Self.gesture[0]]) }
    let text = (requests + [RRWebTests.request("one", [RRWebTests.snapshot(0)])]).joined(separator: "\n")
    #expect(try RRWebTests.batch(text).session.description == "one")
  }

  @Test func orderOfSessionsIsThatOfTheirFirstPictures() throws {
    let screen = #"{"type":4,"timestamp":\#(Self.start),"data":{"width":393,"height":852,"href":""}}"#
    let text = [
      RRWebTests.request("one", [screen, Self.gesture[0]]), RRWebTests.request("two", [RRWebTests.snapshot(0)]),
      RRWebTests.request("one", [RRWebTests.snapshot(0)]),
    ].joined(separator: "\n")
    let sessions = try #require(try RRWebTests.read(text))
    #expect(sessions.readers.map(\.batch.session.description) == ["two", "one"])
    #expect(sessions.readers.map(\.batch.pointers.events.count) == [0, 1])
  }

  // MARK: - Sentry for Android

  private func android(_ recording: String) throws -> Batch {
    let id = "replay_0123456789abcdef0123456789abcdef"
    let folder = "\(UUID().uuidString)/\(id)"
    _ = try scratch.directory(folder)
    try scratch.file(folder + "/1767859512340.jpg", Fixture("single-frame").bytes("1767859512340.jpg"))
    let text = "config.height=912\nconfig.width=416\nconfig.frame-rate=1\nreplay.recording=\(recording)\nsegment.id=0"
    try scratch.file(folder + "/.ongoing_segment", Array(text.utf8))
    return try BatchReader(reading: scratch.path(folder)).batch
  }

  @Test func touchesOfSentryAndroidAreReadAndLeaveTheMetadata() throws {
    let batch = try android("{}[\(Self.gesture[...3].joined(separator: ","))]")
    #expect(Self.events(of: batch) == Array(Self.expected[...4]))
    #expect(batch.pointers.events.allSatisfy { $0.space == .pixels })
    #expect(batch.metadata.object?["sentry"]?.object?["config.width"] == .string("416"))
    #expect(!batch.metadata.line.contains("recording"))
    #expect(batch.warnings == [])
  }

  @Test(arguments: [
    "", "{}", "null", "{}[", "{}[{]", #"{}{"a":1}"#, "{}[7,null,[]]", String(repeating: "[", count: 5_000),
  ])
  func unreadableRecordingOfSentryAndroidCostsOnlyTheTouches(recording: String) throws {
    let batch = try android(recording)
    #expect(batch.pointers == .none)
    #expect(batch.frames.count == 1)
    #expect(batch.metadata.object?["sentry"]?.object?["segment.id"] == .string("0"))
  }

  @Test func recordingOfSentryAndroidWithoutTouchesStaysInTheMetadata() throws {
    let recording = #"{}[{"type":5,"timestamp":1767859512340,"data":{"tag":"breadcrumb"}}]"#
    let batch = try android(recording)
    #expect(batch.pointers == .none && batch.warnings == [])
    #expect(batch.metadata.object?["sentry"]?.object?["replay.recording"] == .string(recording))
    // As before, a side file that is too large is not used.
    #expect(try android("{}[" + String(repeating: " ", count: 20_000) + "]").metadata == .object([:]))
  }

  @Test func breadcrumbsOfSentryAndroidAreLabelsAndLeaveTheMetadata() throws {
    func event(_ offsetMs: Int64, _ tag: String, _ payload: String) -> String {
      #"{"type":5,"timestamp":\#(Self.start + offsetMs),"data":{"tag":"\#(tag)","payload":{\#(payload)}}}"#
    }
    let recording = [
      event(0, "breadcrumb", #""category":"ui.tap","message":"btn_pay","data":{"view.tag":"s3cret"}"#), Self.gesture[0],
      event(5, "performanceSpan", #""op":"resource.http","description":"https://a/?s3cret","startTimestamp":1"#),
      event(9, "breadcrumb", #""timestamp":1767859512.84,"category":"navigation","data":{"to":"PayActivity"}"#),
      event(9, "breadcrumb", #""category":"app.log","message":"down","level":"error""#),
      #"{"type":5,"data":{"tag":"breadcrumb","payload":{"category":"ui.tap","message":"no time"}}}"#,
    ]
    let batch = try android("{}[\(recording.joined(separator: ","))]")
    #expect(batch.labels.map(\.text) == ["ui.tap btn_pay", "app.log down", "PayActivity"])
    #expect(batch.labels.map(\.kind) == ["mark", "error", "page"])
    #expect(batch.labels.map { $0.timeMs - Self.start } == [0, 9, 500])
    #expect(batch.pointers.events.count == 1 && batch.warnings.count == 1, "\(batch.warnings)")
    #expect(!batch.metadata.line.contains("recording") && !batch.metadata.line.contains("s3cret"))
  }

  @Test func recordingOfSentryAndroidMayBeLong() throws {
    let positions = (0..<100).map { #"{"id":0,"x":314.2979431152344,"y":625.44140625,"timeOffset":-\#($0)}"# }
    let moves = (0..<60).map { Self.rrweb(#""source":6,"positions":[\#(positions.joined(separator: ","))]"#, $0) }
    let batch = try android("{}[\(moves.joined(separator: ","))]")
    #expect(batch.pointers.events.count == 6_000)
    #expect(batch.pointers.events.allSatisfy { $0.x == 314.3 && $0.y == 625.44 })
  }
}
