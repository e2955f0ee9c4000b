import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

@Suite struct PlaywrightTests {
  private static let start: Int64 = 1_767_859_512_340
  private static let pages = ["page@0123456789abcdef0123456789abcdef", "page@fedcba9876543210fedcba9876543210"]
  private static let head =
    #"{"version":10,"type":"context-options","wallTime":1767859512000,"monotonicTime":100.5}"#

  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Returns a trace line about an existing picture.
  private static func frame(
    _ rest: String, picture: String = "\(pages[0])-\(start).jpeg", page: String = pages[0]
  ) -> String {
    #"{"type":"screencast-frame","pageId":"\#(page)","file":"screencast/\#(picture)","width":180,"height":320\#(rest)}"#
  }

  /// Reads traces, each a list of lines, with pictures next to them.
  private func read(
    _ traces: [String: [String]], pictures: [String] = ["screencast/\(pages[0])-\(start).jpeg"],
    limits: Limits = Limits(), isDirectory: Bool = false
  ) throws -> BatchSessions {
    let image = try BatchTests.jpeg
    let files =
      traces.map { ($0.key, Array(($0.value.joined(separator: "\n") + "\n").utf8)) } + pictures.map { ($0, image) }
    if isDirectory {
      let folder = try scratch.directory("trace")
      for name in ["screencast", "resources"] { _ = try scratch.directory("trace/" + name) }
      for (name, bytes) in files { try scratch.file("trace/" + name, bytes) }
      return try BatchSessions(reading: folder, limits: limits)
    }
    let archive = ZipArchive(files.map { ZipArchive.Entry($0.0, $0.1) })
    return try BatchSessions(reading: scratch.file("trace.zip", archive.bytes), limits: limits)
  }

  // MARK: - Instants

  @Test(arguments: [
    (#","timestamp":900,"frameSwapWallTime":1767859512345.499"#, 5),
    (#","timestamp":900,"frameSwapWallTime":1767859512345.5"#, 6),
    (#","timestamp":500.75,"frameSwapWallTime":null"#, 60), (#","timestamp":440.25"#, 0), ("", 0),
    (#","timestamp":null"#, 0),
  ])
  func instantIsTheSwapTimeThenTheTimestampThenTheName(_ rest: String, _ offsetMs: Int64) throws {
    let batch = try read(["trace.trace": [Self.head, Self.frame(rest)]]).readers[0].batch
    #expect(batch.frames.map(\.timeMs) == [Self.start + offsetMs])
    #expect(batch.capture == .onChange)
    #expect(batch.session.description == "trace.0123456789abcdef0123456789abcdef")
  }

  @Test func instantIsFromTheNameWhenTheTraceHasNoClock() throws {
    let head = #"{"version":6,"type":"context-options"}"#
    let batch = try read(["trace.trace": [head, Self.frame(#","timestamp":500"#)]]).readers[0].batch
    #expect(batch.frames.map(\.timeMs) == [Self.start])
  }

  /// Of two frames with the same instant, the later one comes first, and wins.
  @Test func laterFrameWinsAtEqualInstants() throws {
    let names = (0..<2).map { "\(Self.pages[0])-\(Self.start + Int64($0)).jpeg" }
    let lines = names.map { Self.frame(#","frameSwapWallTime":1767859512345.2"#, picture: $0) }
    let batch = try read(["trace.trace": [Self.head] + lines], pictures: names.map { "screencast/" + $0 }).readers[0]
      .batch
    #expect(batch.frames.map(\.source) == names.reversed())
  }

  // MARK: - Lines that are refused

  @Test(arguments: [
    (frame(#","timestamp":"soon""#), "it tells no time"), (frame(#","frameSwapWallTime":NaN"#), "it tells no time"),
    (frame(#","frameSwapWallTime":1e300"#), "it tells no time"),
    (frame(#","frameSwapWallTime":-Infinity"#), "it tells no time"),
    (frame(#","frameSwapWallTime":1"#), "instant 1 lies outside 2001 to 2100"),
    (frame("", picture: "other-1767859512340.jpeg"), "missing"),
    (frame("", picture: "../x-1767859512340.jpeg"), "missing"),
    (frame("", page: "page@"), "it names no page"), (frame("", page: "page@xyz"), "it names no page"),
    (frame("", page: "../../x"), "it names no page"),
    (#"{"type":"screencast-frame","pageId":"page@0123456789abcdef0123456789abcdef"}"#, "it names no picture"),
    (#"{"type":"screencast-frame","pageId":"#, "no JSON"),
    (#"{"type":"screencast-frame","type":"screencast-frame"}"#, "no JSON"),
    (String(repeating: "[", count: 100) + #""screencast-frame""#, "no JSON"),
  ])
  func badFrameIsRefusedAndTheOthersAreTaken(_ line: String, _ reason: String) throws {
    let good = Self.frame(#","frameSwapWallTime":1767859512345"#)
    let batch = try read(["trace.trace": [Self.head, line, good]]).readers[0].batch
    #expect(batch.frames.map(\.timeMs) == [Self.start + 5])
    #expect(batch.refused.count == 1)
    #expect(batch.refused.first?.reason.hasPrefix(reason) == true, "\(batch.refused)")
  }

  @Test func otherLinesAreSkipped() throws {
    let lines = [
      Self.head, "", "not JSON", #"{"type":"console","text":"\"screencast-frame\""}"#,
      #"{"type":"console","text":"screencast-frame"}"#,
      #"{"type":"frame-snapshot","html":"\#(String(repeating: "x", count: 2 << 20))"}"#,
      Self.frame(#","frameSwapWallTime":1767859512345"#),
    ]
    for isDirectory in [false, true] {
      let batch = try read(["trace.trace": lines], isDirectory: isDirectory).readers[0].batch
      #expect(batch.frames.count == 1 && batch.refused.isEmpty)
    }
  }

  @Test func pictureThatNoTraceNamesIsReported() throws {
    let others = ["screencast/\(Self.pages[0])-1.jpeg", "resources/page@1-2.jpeg", "resources/0123.jpeg", "src/a.js"]
    let batch = try read(
      ["trace.trace": [Self.head, Self.frame("")], "trace.network": ["{}"]],
      pictures: ["screencast/\(Self.pages[0])-\(Self.start).jpeg"] + others
    ).readers[0].batch
    #expect(batch.refused.map(\.source) == Array(others.prefix(2)))
  }

  // MARK: - Sessions

  @Test func eachPageOfAllTracesIsASession() throws {
    let pictures = Self.pages.map { "\($0)-\(Self.start).jpeg" }
    let traces = [
      "trace.trace": [Self.head, Self.frame("", picture: pictures[0])],
      "0-trace.trace": [Self.head, Self.frame("", picture: pictures[1], page: Self.pages[1])],
      "test.trace": [Self.head], "other.trace": ["no trace"],
    ]
    let sessions = try read(traces, pictures: pictures.map { "screencast/" + $0 })
    #expect(sessions.readers.map(\.batch.session.description) == Self.pages.map { "trace." + $0.dropFirst(5) })
    #expect(sessions.readers.map(\.batch.frames.count) == [1, 1])
    #expect(sessions.readers[0].batch.refused.map(\.source) == ["other.trace"])
  }

  @Test func pageWithoutPicturesDoesNotStopTheOthers() throws {
    let lines = [Self.head, Self.frame(""), Self.frame("", picture: "gone-1767859512340.jpeg", page: Self.pages[1])]
    let sessions = try read(["trace.trace": lines])
    #expect(sessions.readers.count == 1)
    #expect(sessions.refused.map(\.session) == ["trace." + Self.pages[1].dropFirst(5)])
  }

  @Test func traceWithoutScreencastIsRefusedWithAdvice() throws {
    let error = #expect(throws: BadBatch.self) { try read(["trace.trace": [Self.head]]) }
    #expect(error?.cause == "a Playwright trace without a screencast")
    #expect(error?.advice.contains("screenshots=True") == true)
  }

  @Test(arguments: [(5, false), (6, true), (11, true)])
  func olderVersionIsRefusedAndNewerOneIsReadWithAWarning(_ version: Int, _ isRead: Bool) throws {
    let head = #"{"version":\#(version),"type":"context-options"}"#
    func warnings() throws -> [String] {
      try read(["trace.trace": [head, Self.frame("")]]).readers[0].batch.warnings
    }
    if isRead {
      #expect(try warnings().count == (version > 10 ? 1 : 0))
    } else {
      #expect(throws: BadBatch.self) { try warnings() }
    }
  }

  @Test func framesAndPagesAreBounded() throws {
    var limits = Limits()
    limits.entries = 20
    let many = #expect(throws: BadBatch.self) {
      try read(["trace.trace": [Self.head] + (0..<21).map { _ in Self.frame("") }], limits: limits)
    }
    #expect(many?.cause == "more than 20 frames")
    let pages = (0..<257).map { Self.frame("", page: "page@" + String($0, radix: 16)) }
    let error = #expect(throws: BadBatch.self) { try read(["trace.trace": [Self.head] + pages]) }
    #expect(error?.cause == "more than 256 pages")
  }
}
