import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Pointer events as recorders write them.
@Suite struct PointerSourceTests {
  private static let start = RRWebTests.start
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func native(_ members: String, limits: Limits = Limits()) throws -> Batch {
    let path = try scratch.directory("batch-\(UUID().uuidString)")
    let folder = path.split(separator: "/").last.map(String.init) ?? ""
    try scratch.file(folder + "/a.jpg", Fixture("single-frame").bytes("1767859512340.jpg"))
    let json = #"{"version":1,"frames":[{"file":"a.jpg","timeMs":1767859512340}],\#(members)}"#
    try scratch.file(folder + "/batch.json", Array(json.utf8))
    return try BatchReader(reading: path, limits: limits).batch
  }

  private static func events(of batch: Batch) -> [String] {
    batch.pointers.events.map { "\($0.timeMs - start) \($0.kind) \($0.pointer) \($0.x) \($0.y)" }
  }

  // MARK: - batch.json

  @Test func eventsOfTheDescriptionAreReadInTheOrderOfTheirTimes() throws {
    let batch = try native(
      #"""
      "scale":3,"events":[{"timeMs":1767859512350,"type":"move","x":1.239,"y":-2},
      {"timeMs":1767859512340,"type":"down","x":0.5,"y":4e1,"pointer":7,"pressure":0.4},
      {"timeMs":1767859512350,"type":"up","x":1,"y":2,"pointer":0},{"timeMs":1767859512360,"type":"cancel","x":1,"y":2}]
      """#)
    #expect(
      Self.events(of: batch) == ["0 down 7 0.5 40.0", "10 move 0 1.24 -2.0", "10 up 0 1.0 2.0", "20 cancel 0 1.0 2.0"])
    #expect(batch.pointers.events.allSatisfy { $0.space == .picture(scale: 3) })
    #expect(batch.warnings == [])
  }

  @Test(arguments: [
    (#"{"type":"down","x":1,"y":2}"#, #"no "timeMs""#), (#"{"timeMs":1.5,"type":"down","x":1,"y":2}"#, "timeMs: not"),
    (#"{"timeMs":NaN,"type":"down","x":1,"y":2}"#, "timeMs: not"),
    (#"{"timeMs":1767859512340,"type":"tap","x":1,"y":2}"#, "type: not one of down, move, up, cancel"),
    (#"{"timeMs":1767859512340,"type":"up","x":NaN,"y":2}"#, "x and y are not two numbers"),
    (#"{"timeMs":1767859512340,"type":"up","x":1,"y":-Infinity}"#, "x and y are not two numbers"),
    (#"{"timeMs":1767859512340,"type":"up","x":1e300,"y":2}"#, "x and y are not two numbers"),
    (#"{"timeMs":1767859512340,"type":"up","x":"1","y":2}"#, "x and y are not two numbers"),
    (#"{"timeMs":1767859512340,"type":"up","x":1}"#, "x and y are not two numbers"),
    (#"{"timeMs":1767859512340,"type":"up","x":1,"y":2,"pointer":-1}"#, "pointer: not a number from 0"),
    (#"{"timeMs":1767859512340,"type":"up","x":1,"y":2,"pointer":4294967296}"#, "pointer: not a number from 0"),
    (#"{"timeMs":1767859512340,"type":"up","x":1,"y":2,"hidden":true}"#, "hidden is not known, and may have been"),
    (#"{"timeMs":5,"type":"up","x":1,"y":2}"#, "instant 5 lies outside"), ("[]", "not an object"),
    ("7", "not an object"),
    ("[[[[[[[[1]]]]]]]]", "not an object"),
  ])
  func unusableEventIsLeftOutWithItsReasonAndTheOthersAreKept(event: String, reason: String) throws {
    let batch = try native(#""events":[\#(event),{"timeMs":1767859512341,"type":"down","x":3,"y":4}]"#)
    #expect(Self.events(of: batch) == ["1 down 0 3.0 4.0"])
    #expect(batch.frames.count == 1)
    try #require(batch.warnings.count == 1)
    #expect(batch.warnings[0].hasPrefix("1 pointer event is left out: "))
    #expect(batch.warnings[0].contains(reason), "\(batch.warnings)")
  }

  @Test(arguments: ["{}", "7", #""down""#, "false"])
  func eventsThatAreNoListAreIgnoredWithAWarning(events: String) throws {
    let batch = try native(#""events":\#(events)"#)
    #expect(batch.pointers == .none)
    #expect(batch.warnings == ["1 pointer event is left out: events is not a list"])
  }

  @Test func eventsWithAnInvalidScaleAreLeftOut() throws {
    let batch = try native(#""scale":0,"events":[{"timeMs":1767859512340,"type":"down","x":3,"y":4}]"#)
    #expect(batch.pointers == .none)
  }

  @Test func eventsBeyondTheLimitsOfABatchAndOfASecondAreLeftOut() throws {
    func events(_ count: Int, everyMs: Int) -> String {
      let list = (0..<count).map {
        #"{"timeMs":\#(1_767_859_512_340 + everyMs * $0),"type":"\#($0 % 10 == 0 ? "down" : "move")","x":1,"y":2}"#
      }
      return #""events":[\#(list.joined(separator: ","))]"#
    }
    var limits = Limits()
    limits.touches = 30
    let few = try native(events(40, everyMs: 100), limits: limits)
    #expect(few.pointers.events.count == 30)
    #expect(few.warnings == ["10 pointer events are left out; the first one: beyond the limit of a batch"])
    let dense = try native(events(3_000, everyMs: 1))
    let seconds = Dictionary(grouping: dense.pointers.events) { $0.timeMs / 1_000 }.values
    #expect(seconds.allSatisfy { $0.count { $0.kind == .move } <= PointerTrack.movesPerSecond })
    #expect(seconds.allSatisfy { $0.count { $0.kind != .move } <= PointerTrack.pressesPerSecond })
    #expect(seconds.map(\.count).max() == PointerTrack.movesPerSecond + PointerTrack.pressesPerSecond)
  }

  /// Reads a batch of two frames and an entry with masks that is refused.
  private func refusing(_ entry: String) throws -> Batch {
    let path = try scratch.directory("refused-\(UUID().uuidString)")
    let folder = path.split(separator: "/").last.map(String.init) ?? ""
    for file in ["a", "b", "c"] {
      try scratch.file("\(folder)/\(file).jpg", Fixture("single-frame").bytes("1767859512340.jpg"))
    }
    let json = #"""
      {"version":1,"frames":[{"file":"a.jpg","timeMs":1767859512340},{"file":"b.jpg","timeMs":1767859514340},\#(entry)],
      "events":[{"timeMs":1767859512341,"type":"down","x":1,"y":2}]}
      """#
    try scratch.file(folder + "/batch.json", Array(json.utf8))
    return try BatchReader(reading: path).batch
  }

  private static let mask = #"[{"x":1,"y":1,"width":1,"height":1}]"#

  @Test(arguments: [
    #""file":"a.jpg","masks":\#(mask)"#, #""file":"../c.jpg","masks":\#(mask)"#,
    #""file":"a.jpg","redactions":\#(mask)"#,
    #""layers":[{"file":"c.jpg","masks":\#(mask)}]"#,
    #""layers":[{"file":"c.jpg","opacity":7,"masks":7}],"width":9,"height":9"#,
  ])
  func refusedEntryWithMasksHidesEventsFromItsInstant(entry: String) throws {
    let batch = try refusing(#"{"timeMs":1767859513340,\#(entry)}"#)
    #expect(batch.pointers.blindMs == [1_767_859_513_340])
    #expect(batch.pointers.events.count == 1 && batch.refused.count >= 1)
    let plain = try refusing(#"{"timeMs":1767859513340,"file":"a.jpg"}"#)
    #expect(plain.pointers.blindMs == [])
  }

  @Test(arguments: [
    #""file":"c.jpg","timeMs":NaN,"masks":\#(mask)"#, #""file":"c.jpg","masks":\#(mask)"#,
    #""file":"c.jpg","timeMs":5,"masks":\#(mask)"#, #""file":"c.jpg","timeMs":1867859513340,"masks":\#(mask)"#,
    #""file":"c.jpg","timeMs":1867859513340,"masks":7"#,
  ])
  func masksAtAnUnknownTimeHideAllEvents(entry: String) throws {
    let batch = try refusing("{\(entry)}")
    #expect(batch.frames.count == 2)
    #expect(batch.pointers == .none)
    #expect(batch.warnings.contains { $0.hasPrefix("1 pointer event is left out: ") && $0.contains("mask") })
  }

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

  @Test func recordingOfSentryAndroidMayBeLong() throws {
    let positions = (0..<100).map { #"{"id":0,"x":314.2979431152344,"y":625.44140625,"timeOffset":-\#($0)}"# }
    let moves = (0..<60).map { Self.rrweb(#""source":6,"positions":[\#(positions.joined(separator: ","))]"#, $0) }
    let batch = try android("{}[\(moves.joined(separator: ","))]")
    #expect(batch.pointers.events.count == 6_000)
    #expect(batch.pointers.events.allSatisfy { $0.x == 314.3 && $0.y == 625.44 })
  }

  // MARK: - Digest

  @Test func digestOfABatchChangesWithItsEventsAndOnlyWithThem() throws {
    func digest(_ events: String) throws -> String {
      let path = try scratch.directory("digest-\(UUID().uuidString)")
      let folder = path.split(separator: "/").last.map(String.init) ?? ""
      try scratch.file(folder + "/a.jpg", Fixture("single-frame").bytes("1767859512340.jpg"))
      let json = #"{"version":1,"session":"s","frames":[{"file":"a.jpg","timeMs":1767859512340}]\#(events)}"#
      try scratch.file(folder + "/batch.json", Array(json.utf8))
      return try BatchDigest.of(BatchReader(reading: path))
    }
    let event = #"{"timeMs":1767859512340,"type":"down","x":1,"y":2}"#
    let plain = try digest("")
    // Of the version before pointer events were read.
    #expect(plain == "2485572879e968eb6ec08de40889e4d04ff19e6d5af168cfc0536b63df98a23c")
    for same in [#","events":[]"#, #","events":null"#, #","events":[{}]"#] { #expect(try digest(same) == plain) }
    let variants = [
      event, event + "," + event, event.replacing("down", with: "up"), event.replacing(#""x":1"#, with: #""x":1.01"#),
      event.replacing("340", with: "341"), event.replacing("}", with: #","pointer":1}"#),
    ]
    let digests = try variants.map { try digest(#","events":[\#($0)]"#) } + [plain]
    #expect(Set(digests).count == digests.count)
    #expect(try digest(#","events":[\#(event.replacing(#""y":2"#, with: #""y":2.001"#))]"#) == digests[0])
  }
}
