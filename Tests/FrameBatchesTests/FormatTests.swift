import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// The same five frames in the format of each recorder.
@Suite struct FormatTests {
  static let hex = "0123456789abcdef0123456789abcdef"
  static let uuid = "5E0A1F2C-0B7D-4C7E-9E55-7A1D2C3B4A59"
  static let rejourney = "session_1767859512340_\(hex)"
  static let postHog = "0195e5a2-7c11-7d1e-8b5a-2f6d3c9e4b10"
  static let last = 1_767_859_516_340

  struct Form: Sendable, CustomStringConvertible {
    let path: String
    let session: String
    let format: String
    var refused: [String] = []

    var description: String { path }
  }

  static let good = [
    Form(path: "plain@1", session: "plain", format: "plain"),
    Form(path: "native", session: "native", format: "native"),
    Form(
      path: "sentry-cocoa", session: hex, format: "Sentry Cocoa", refused: ["inf.png", "nan.png"]),
    Form(
      path: "sentry-cocoa/\(uuid)", session: hex, format: "Sentry Cocoa", refused: ["inf.png", "nan.png"]),
    Form(path: "bare-sentry-cocoa/\(uuid)", session: uuid, format: "Sentry Cocoa"),
    Form(path: "bare-sentry-cocoa", session: uuid, format: "Sentry Cocoa"),
    Form(path: "sentry-android/replay_\(hex)", session: hex, format: "Sentry Android"),
    Form(path: "sentry-android-minus-one/replay_\(hex)", session: hex, format: "Sentry Android"),
    Form(path: "sentry-android-missing/replay_\(hex)", session: hex, format: "Sentry Android"),
    Form(path: "sentry-android-no-equals/replay_\(hex)", session: hex, format: "Sentry Android"),
    Form(
      path: "openreplay-tar/7281923112-\(last).tar.gz", session: "7281923112", format: "OpenReplay or Rejourney tar"),
    Form(path: "openreplay-frames/7281923112-\(last).gz", session: "7281923112", format: "OpenReplay frames"),
    Form(path: "openreplay-frames/replay.frames", session: "replay", format: "OpenReplay frames"),
    Form(path: "openreplay-frames/replay.frames.zst", session: "replay", format: "OpenReplay frames"),
    Form(path: "openreplay-frames-bad/out-of-order.frames", session: "out-of", format: "OpenReplay frames"),
    Form(
      path: "openreplay-frames-bad/empty-record.frames", session: "empty", format: "OpenReplay frames",
      refused: ["empty-record#2"]),
    Form(path: "rejourney-frames/\(rejourney)-\(last).tar.gz", session: rejourney, format: "Rejourney frames"),
    Form(path: "rejourney-tar/\(rejourney)-\(last).tar.gz", session: rejourney, format: "OpenReplay or Rejourney tar"),
    Form(
      path: "rejourney-tar-offsets/\(rejourney)-\(last).tar.gz", session: rejourney,
      format: "OpenReplay or Rejourney tar"),
    Form(path: "rejourney-spill/\(rejourney)", session: rejourney, format: "Rejourney spill"),
    Form(path: "named/iso", session: "iso", format: "times in names"),
    Form(path: "named/screenpipe", session: "screenpipe.m1", format: "times in names"),
    Form(path: "zip/stored@1.zip", session: "stored", format: "plain"),
    Form(path: "zip/deflated@1.zip", session: "deflated", format: "plain"),
    Form(path: "zip/zip64@1.zip", session: "zip64", format: "plain"),
    Form(path: "zip/streamed@1.zip", session: "streamed", format: "plain"),
    Form(path: "zip/cp437@1.zip", session: "cp437", format: "plain"),
    Form(path: "zip/utf8@1.zip", session: "utf8", format: "plain"),
    Form(path: "zip/backslashes@1.zip", session: "backslashes", format: "plain"),
    Form(path: "zip/native.zip", session: "native", format: "native"),
    Form(path: "playwright/trace-8.zip", session: "trace-8.\(hex)", format: "Playwright trace"),
    Form(path: "playwright/trace-10.zip", session: "trace-10.\(hex)", format: "Playwright trace"),
    Form(path: "posthog-export/replay.json", session: "replay", format: "rrweb screenshots"),
    Form(path: "posthog-export/windows.json.gz", session: "windows", format: "rrweb screenshots"),
    Form(path: "posthog-export/pairs.jsonl.gz", session: "pairs", format: "rrweb screenshots"),
    Form(path: "posthog-requests/ios.json.gz", session: postHog, format: "rrweb screenshots"),
    Form(path: "posthog-requests/android.jsonl.gz", session: postHog, format: "rrweb screenshots"),
    Form(path: "mixpanel/replay.json.gz", session: "replay", format: "rrweb screenshots"),
    Form(path: "launchdarkly/replay.json.gz", session: "replay", format: "rrweb screenshots"),
    Form(path: "rrweb-canvas/replay.jsonl.gz", session: "replay.canvas7", format: "rrweb screenshots"),
    Form(path: "screencast/events.jsonl", session: "events", format: "Chrome DevTools screencast"),
    Form(path: "screencast/parameters.jsonl.gz", session: "parameters", format: "Chrome DevTools screencast"),
  ]

  static func images() throws -> [[UInt8]] {
    try (0..<5).map { try Fixture("exact-1fps").bytes(String(format: "%04d.jpg", $0)) }
  }

  private func open(_ path: String) throws -> BatchReader { try BatchReader(reading: Fixture("formats/" + path).path) }

  private func images(of source: BatchReader) throws -> [[UInt8]] {
    try source.batch.frames.map { frame in
      guard case .bytes(let bytes) = try source.images(of: frame)[0] else { return [] }
      return bytes
    }
  }

  @Test(arguments: good)
  func framesAreReadFromEachRecorderFormat(form: Form) throws {
    let source = try open(form.path)
    #expect(source.format == form.format)
    #expect(source.batch.session.description == form.session)
    #expect(source.batch.frames.map(\.timeMs) == (0..<5).map { 1_767_859_512_340 + 1_000 * $0 })
    #expect(source.batch.intervalMs == 1_000)
    #expect(source.batch.endMs == 1_767_859_517_340)
    #expect(try images(of: source) == Self.images())
    #expect(source.batch.refused.map(\.source) == form.refused)
  }

  @Test func truncatedRecordIsReportedAndOthersAreKept() throws {
    for (path, reason) in [
      ("openreplay-frames-bad/cut.frames", "the record breaks off: "),
      ("openreplay-frames-bad/cut-in-header.frames", "the record breaks off: 7 bytes of 12"),
      ("rejourney-frames-bad/\(Self.rejourney)-\(Self.last).tar.gz", "the record breaks off: "),
    ] {
      let source = try open(path)
      #expect(try images(of: source) == Array(Self.images().prefix(4)))
      #expect(source.batch.refused.count == 1)
      #expect(source.batch.refused[0].source.hasSuffix("#4"))
      #expect(source.batch.refused[0].reason.hasPrefix(reason))
    }
  }

  /// Of two frames with the same instant, the later one comes first, and wins.
  @Test func laterFrameWinsAtEqualInstants() throws {
    let source = try open("openreplay-frames-bad/equal-instants.frames")
    let images = try images(of: source)
    #expect(images.count == 6)
    #expect(try images[0] == Self.images()[0] && images[1] == Self.images()[4])
  }

  @Test func sideFileOfTheRecorderIsKept() throws {
    let batch = try open("sentry-android/replay_\(Self.hex)").batch
    let said = batch.metadata.object?["sentry"]?.object
    #expect(said?["replay.screen-at-start"] == .string("Main=Activity"))
    #expect(said?["segment.timestamp"] == .string("2026-01-08T08:05:12.340Z"))
  }

  /// The bytes that the recorders' sources specify.
  @Test func recorderBytesAreReadAsInstants() throws {
    let jpeg = try Self.images()[0]
    func length(_ bytes: [UInt8], _ isHighestFirst: Bool) -> [UInt8] {
      withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { isHighestFirst ? Array($0) : $0.reversed() }
    }
    let scratch = try ScratchDirectory()
    let openReplay = try scratch.file(
      "7-1.frames", [0x05, 0xF7, 0x9D, 0x79, 0x8D, 0x01, 0x00, 0x00] + length(jpeg, false) + jpeg)
    #expect(try BatchReader(reading: openReplay).batch.frames.map(\.timeMs) == [1_707_142_412_037])
    let rejourney = try scratch.file(
      "session_1782562514606_\(Self.hex)-1.gz", [0, 0, 0, 0, 0, 0, 0x03, 0xE8] + length(jpeg, true) + jpeg)
    #expect(try BatchReader(reading: rejourney).batch.frames.map(\.timeMs) == [1_782_562_515_606])
    let unnamed = try scratch.file("replay.gz", [0, 0, 0, 0, 0, 0, 0x03, 0xE8] + length(jpeg, true) + jpeg)
    #expect(throws: BadBatch.self) { try BatchReader(reading: unnamed) }
    let cocoa = try scratch.directory("x")
    try scratch.file("x/808433369.1229999.png", jpeg)
    try scratch.file("x/808433370.0.png", jpeg)
    try scratch.file("x/808433371.25.png", jpeg)
    #expect(
      try BatchReader(reading: cocoa).batch.frames.map(\.timeMs) == [
        1_786_740_569_123, 1_786_740_570_000, 1_786_740_571_250,
      ])
  }

  /// Random streams of two similar formats: all sizes of lengths and instants, and any number of records.
  @Test func streamIsNeverReadInTheOtherFormat() throws {
    var random = Random(seed: 4)
    for round in 0..<2_000 {
      let isRejourney = round % 2 == 1
      var bytes: [UInt8] = []
      var instants: [Int64] = []
      for _ in 0..<random.int(1...6) {
        let instant =
          isRejourney ? random.int(0...(1 << random.int(1...36))) : random.int(1_000_000_000_000...3_999_999_999_999)
        // Includes lengths that are also valid in the other byte order.
        let size = Int(random.once(in: 3) ? random.int(1...255) << 8 : random.int(4...70_000))
        var image = [UInt8](repeating: UInt8.random(in: 0...255, using: &random), count: size + 3)
        for (index, byte) in [0xFF, 0xD8, 0xFF].enumerated() { image[index] = UInt8(byte) }
        let head = [(UInt64(instant), 8), (UInt64(image.count), 4)].flatMap { value, count in
          let digits = (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
          return isRejourney ? digits.reversed() : digits
        }
        bytes.append(contentsOf: head)
        bytes.append(contentsOf: image)
        instants.append(instant)
      }
      let source = BatchSource(name: "session_1000000000000_x-1", contents: StreamContents(.memory(bytes)))
      let drafts = try [
        OpenReplayFramesFormat.read(source, limits: Limits()), RejourneyFramesFormat.read(source, limits: Limits()),
      ]
      #expect((drafts[0] == nil) == isRejourney)
      let draft = try #require((drafts[0] ?? drafts[1])?.first)
      let epoch: Int64 = isRejourney ? 1_000_000_000_000 : 0
      #expect(draft.frames.map(\.timeMs) == instants.map { $0 + epoch }, "round \(round)")
      #expect(draft.refused.isEmpty)
    }
  }

  @Test func batchIsOneRecordingWithoutOtherFiles() throws {
    let scratch = try ScratchDirectory()
    let jpeg = try Self.images()[0]
    let other = "00000000-0000-0000-0000-000000000000"
    for folder in [Self.uuid, other] {
      _ = try scratch.directory("replays/" + folder)
      try scratch.file("replays/\(folder)/789552312.5.png", jpeg)
    }
    try scratch.file("replays/replay.last", Array(#"{"replayId":"\#(Self.hex)","path":"\#(other)"}"#.utf8))
    #expect(throws: BadBatch.self) { try BatchReader(reading: scratch.path("replays")) }
    try FileManager.default.moveItem(atPath: scratch.path("replays/" + Self.uuid), toPath: scratch.path(Self.uuid))
    let batch = try BatchReader(reading: scratch.path("replays")).batch
    #expect(batch.session.description == Self.hex)
    #expect(batch.frames.map(\.paths) == [["\(other)/789552312.5.png"]])
    #expect(batch.refused.isEmpty)
    // A collection of recordings that contains one valid recording.
    try scratch.file("replays/other.tar.gz", [1, 2, 3])
    #expect(throws: BadBatch.self) { try BatchReader(reading: scratch.path("replays")) }
    try FileManager.default.removeItem(atPath: scratch.path("replays/other.tar.gz"))
    try FileManager.default.moveItem(atPath: scratch.path(Self.uuid), toPath: scratch.path("replays/" + Self.uuid))
    // The reader ignores a side file of another recording.
    #expect(try BatchReader(reading: scratch.path("replays/" + Self.uuid)).batch.session.description == Self.uuid)
  }

  @Test func fewFramesBeyondAClockJumpAreRefused() throws {
    let scratch = try ScratchDirectory()
    let folder = try scratch.directory("walk")
    let (start, day): (Int64, Int64) = (1_767_859_512_340, 86_400_000)
    for instant in [start - 4_000 * day] + (0..<5).map({ start + 1_000 * $0 }) + [start + 400 * day] {
      try scratch.file("walk/\(instant).jpg", Self.images()[0])
    }
    let batch = try BatchReader(reading: folder).batch
    #expect(batch.frames.map(\.timeMs) == (0..<5).map { start + 1_000 * $0 })
    #expect(batch.refused.count == 2)
    #expect(
      batch.warnings.map { $0.hasPrefix("2 of 7 frames are refused, because they are more than 366 days from the") }
        == [true])
    #expect(batch.refused.allSatisfy { $0.reason.hasSuffix("a clock that jumped") })
    var limits = Limits()
    limits.jumpMs = 4_000 * day
    #expect(try BatchReader(reading: folder, limits: limits).batch.frames.count == 7)
  }

  /// Half a gigabyte of empty records must not allocate forty million objects.
  @Test func aStreamOfTooManyRecordsIsRefusedEarly() throws {
    let scratch = try ScratchDirectory()
    let image = try Self.images()[0]
    let empty: [UInt8] = [0x05, 0xF7, 0x9D, 0x79, 0x8D, 0x01, 0, 0, 0, 0, 0, 0]
    let size = withUnsafeBytes(of: UInt32(image.count).littleEndian) { Array($0) }
    var bytes = Array(empty.prefix(8)) + size + image
    for _ in 0..<20_001 { bytes.append(contentsOf: empty) }
    let file = try scratch.file("many.frames", bytes)
    let error = #expect(throws: BadBatch.self) { try BatchReader(reading: file) }
    #expect(error?.cause == "more than 20000 records")
  }
}
