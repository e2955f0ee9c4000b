import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Labels as producers write them: which are taken, and what is said of the others.
@Suite struct LabelTests {
  private static let start: Int64 = 1_767_859_512_340

  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Reads a batch of two pictures a second apart.
  private func read(
    labels: String? = nil, lines: String? = nil, options: InputOptions = InputOptions(session: "walk"),
    limits: Limits = Limits(), pictures: Int = 2
  ) throws -> BatchSessions {
    let folder = try scratch.directory("batch-\(UUID().uuidString)")
    for number in 0..<pictures {
      let name = labels == nil ? "\(Self.start + 1_000 * Int64(number)).jpg" : "\(number).jpg"
      try Data(BatchTests.jpeg).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
    }
    if let labels {
      let frames = (0..<pictures).map { #"{"file":"\#($0).jpg","timeMs":\#(Self.start + 1_000 * Int64($0))}"# }
      let text = #"{"version":1,"session":"walk","frames":[\#(frames.joined(separator: ","))],"labels":\#(labels)}"#
      try Data(text.utf8).write(to: URL(fileURLWithPath: folder + "/batch.json"))
    }
    if let lines { try Data(lines.utf8).write(to: URL(fileURLWithPath: folder + "/labels.jsonl")) }
    return try BatchSessions(reading: folder, options: labels == nil ? options : InputOptions(), limits: limits)
  }

  private func label(_ rest: String, at offsetMs: Int64 = 0) -> String {
    #"{"timeMs":\#(Self.start + offsetMs),\#(rest)}"#
  }

  @Test func labelsOfABatchAreReadInTheOrderOfTheirTimes() throws {
    let labels = [
      label(#""kind":"step","text":"Second","endMs":\#(Self.start + 900)"#, at: 500),
      label(#""text":"First","level":"error","data":{"selector":".add"}"#), label(#""kind":"tap","text":"With it""#),
    ]
    let batch = try read(labels: "[\(labels.joined(separator: ","))]").readers[0].batch
    #expect(batch.labels.map(\.text) == ["First", "With it", "Second"])
    #expect(batch.labels.map(\.kind) == ["mark", "tap", "step"])
    #expect(batch.labels.map(\.level) == [.error, nil, nil])
    #expect(batch.labels.map(\.endMs) == [nil, nil, Self.start + 900])
    #expect(batch.labels[0].data == .object(["selector": .string(".add")]))
    #expect(batch.warnings.isEmpty)
    for label in batch.labels { #expect(try Label(label.json) == label) }
  }

  @Test(arguments: [
    (#"{"text":"x"}"#, "labels[0]: no \"timeMs\""), (#"{"timeMs":1,"text":"x"}"#, "its time is 1"),
    (#"{"timeMs":1767859512340}"#, "labels[0]: no \"text\""), (#""x""#, "labels[0]: not an object"),
    (#"{"timeMs":1767859512340,"text":" \u0007\n"}"#, "labels[0]: text: nothing in it"),
    (#"{"timeMs":1767859512340,"text":"x","endMs":5}"#, "labels[0]: endMs is before timeMs"),
    (#"{"timeMs":1767859512340,"text":"x","level":"fatal"}"#, "labels[0]: level: \"fatal\" is none of"),
    (#"{"timeMs":1767859512340,"text":"x","data":[]}"#, "labels[0]: data: not an object"),
    (#"{"timeMs":1767859512340,"text":"x","data":{"a":NaN}}"#, "labels[0]: data: NaN"),
    (#"{"timeMs":1767859512340,"text":"x","private":true}"#, "labels[0]: private is not known"),
    (#"{"timeMs":1767859512340,"text":"x","endMs":4200000000000}"#, "its end is not between 2001 and 2100"),
  ])
  func labelThatCannotBeUsedIsLeftOutAndTheOthersStay(_ bad: String, _ reason: String) throws {
    let batch = try read(labels: "[\(bad),\(label(#""text":"good""#))]").readers[0].batch
    #expect(batch.labels.map(\.text) == ["good"])
    #expect(
      batch.warnings.count == 1 && batch.warnings[0].hasPrefix("1 label is left out: \(reason)"), "\(batch.warnings)")
  }

  @Test func listThatIsNoneIsSaid() throws {
    #expect(try read(labels: "{}").readers[0].batch.warnings == ["1 label is left out: labels is not a list"])
    #expect(try read(labels: "null").readers[0].batch.warnings.isEmpty)
  }

  @Test func textIsCleanedAndCut() throws {
    #expect(Label(timeMs: 1, kind: "k", text: " a\u{7}b\r\nc\u{85}d\u{2028}e\n ")?.text == "a b\nc\nd\ne")
    let long = try #require(Label(timeMs: 1, kind: "k", text: String(repeating: "ä", count: 5_000)))
    #expect(long.text.utf8.count <= 4_096 && long.text.hasSuffix("ä…"))
    let arabic = "السلام عليكم"
    #expect(Label(timeMs: 1, kind: "k", text: arabic)?.text == arabic)
    #expect(Label(timeMs: 5, kind: "", text: "x")?.kind == "mark")
    #expect(Label(timeMs: 5, endMs: 5, kind: "k", text: "x")?.endMs == nil)
  }

  @Test func aBatchHasNoMoreLabelsAndBytesThanTheLimits() throws {
    let many = (0..<LabelList.maximumCount + 3).map { label(#""text":"\#($0)""#) }.joined(separator: "\n")
    let batch = try read(lines: many).readers[0].batch
    #expect(batch.labels.count == LabelList.maximumCount && batch.labels.last?.text == "9999")
    #expect(batch.warnings.contains { $0.hasPrefix("3 labels are left out; the first one: a batch has at most 10000") })
    let text = String(repeating: "x", count: 4_000)
    let large = try read(lines: (0..<300).map { _ in label(#""text":"\#(text)""#) }.joined(separator: "\n")).readers[0]
    #expect(large.batch.labels.count == (1 << 20) / 4_004)
    #expect(large.batch.warnings.contains { $0.contains("have at most 1048576 bytes") })
  }

  @Test func labelsChangeNoDigest() throws {
    let plain = try read().readers[0]
    let labelled = try read(lines: label(#""text":"x""#)).readers[0]
    #expect(labelled.batch.labels.count == 1 && plain.batch.labels.isEmpty)
    #expect(try BatchDigest.of(plain) == BatchDigest.of(labelled))
    #expect(labelled.batch.refused == plain.batch.refused)
  }

  @Test func labelsBesideThePicturesOfSeveralFormsAreReadOnce() throws {
    let lines = "\u{20}\n" + label(#""text":"x""#) + "\r\n{]\n"
    for labels in [nil, "[\(label(#""text":"in the batch""#))]"] {
      let batch = try read(labels: labels, lines: lines).readers[0].batch
      #expect(batch.labels.map(\.text) == (labels == nil ? ["x"] : ["in the batch", "x"]))
      #expect(batch.refused.isEmpty, "\(batch.refused)")
      #expect(batch.warnings.count == 1 && batch.warnings[0].contains("labels.jsonl, line 3"), "\(batch.warnings)")
    }
    var options = InputOptions(session: "walk")
    options.takesLabels = false
    #expect(try read(lines: lines, options: options).readers[0].batch.labels.isEmpty)
  }

  @Test func labelsOfAFolderThatIsSplitAreDivided() throws {
    var limits = Limits()
    (limits.frames, limits.splitsFolders) = (2, true)
    let lines = [-5_000, 0, 1_999, 2_000, 3_999, 4_000, 90_000].map { label(#""text":"\#($0)""#, at: $0) }
    let sessions = try read(lines: lines.joined(separator: "\n"), limits: limits, pictures: 6)
    let parts = try sessions.parts(PartLimits(limits, maxHoldMs: 10_000, segmentMs: 5_000))
    #expect(parts.map { $0.readers[0].batch.frames.count } == [2, 2, 2])
    #expect(
      parts.map { $0.readers[0].batch.labels.map(\.text) } == [
        ["-5000", "0", "1999"], ["2000", "3999"], ["4000", "90000"],
      ])
  }

  /// Batches of a growing folder: published pictures had their labels.
  @Test func labelsFollowTheirPictures() throws {
    let lines = [-1, 0, 1_000, 2_500].map { label(#""text":"\#($0)""#, at: $0) }.joined(separator: "\n")
    let batch = try read(lines: lines, pictures: 3).readers[0].batch
    let (first, rest) = (
      batch.with(first: 1, refusing: [], limits: Limits()), batch.without(first: 1, refusing: [], limits: Limits())
    )
    #expect(first.labels.map(\.text) == ["-1", "0"] && rest.labels.map(\.text) == ["1000", "2500"])
  }

  // MARK: - Files

  private func file(_ text: String) throws -> (texts: [String], offsets: [Int64], ends: [Int64?], note: String?) {
    let (list, note) = try LabelFile(Array(text.utf8), name: "labels").labels(from: Self.start)
    let labels = list.labels
    return (
      labels.map(\.text), labels.map { $0.timeMs - Self.start }, labels.map { $0.endMs.map { $0 - Self.start } }, note
    )
  }

  @Test func cuesOfWebVTTAndSRTCountFromTheFirstPicture() throws {
    let vtt =
      "\u{FEFF}WEBVTT\n\nNOTE a\n\n1\n00:01.500 --> 00:00:02.000 line:0\n<v Ann>Hi &amp; <b>bye</b>\nyou\n\n02:00 --> x\nno\n"
    let cues = try file(vtt)
    #expect(cues.texts == ["Hi & bye\nyou"] && cues.offsets == [1_500] && cues.ends == [2_000])
    #expect(cues.note == "labels: its times count from the first picture")
    let srt = try file("1\r\n00:00:01,250 --> 00:00:02,5\r\nOne\r\n\r\n2\r\n01:00:00,000 --> 01:00:01,000\r\nTwo\r\n")
    #expect(srt.texts == ["One", "Two"] && srt.offsets == [1_250, 3_600_000] && srt.ends == [2_500, 3_601_000])
  }

  @Test(arguments: [
    ("1.5,x", 1_500), ("0;x", 0), ("\"2\"\tx", 2_000), ("1767859512.840,x", 500), ("1767859512840,x", 500),
    ("2026-01-08T08:05:12.840Z,x", 500), ("2026-01-08T09:05:12.840+01:00,x", 500), ("1:02:03.5,x", 3_723_500),
    ("time,text\n7,\"x\"", 7_000), ("# a\n7,x", 7_000),
  ])
  func linesOfTimesAndTextsAreRead(_ line: String, _ offsetMs: Int64) throws {
    let read = try file(line)
    #expect(read.texts == ["x"] && read.offsets == [offsetMs])
    #expect((read.note == nil) == (line.contains("1767859512") || line.contains("2026")))
  }

  @Test func textsOfATableMayHaveCommasAndQuotes() throws {
    #expect(try file("1,a, b\n2,\"a, \"\"b\"\"\"\nno time,x").texts == ["a, b", "a, \"b\""])
  }

  @Test(arguments: ["", "hello", "time,text", "WEBVTT\n\n1 --> 2\nx", "{}", "nan,x", "-1,x", "1e30,x"])
  func fileWithoutALabelIsRefused(_ text: String) throws {
    #expect { try LabelFile(Array(text.utf8), name: "labels") } throws: { error in
      "\(error)".contains("no label in it")
    }
    #expect(throws: InvalidOption.self) { try LabelFile([0xFF, 0xFE], name: "labels") }
    #expect(throws: InvalidOption.self) { try LabelFile(reading: scratch.path("none")) }
  }
}
