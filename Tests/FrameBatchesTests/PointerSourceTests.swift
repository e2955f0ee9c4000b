import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Pointer events of `batch.json`: which are left out, and which masks hide them.
@Suite struct PointerSourceTests: PointerSourceSuite {
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
