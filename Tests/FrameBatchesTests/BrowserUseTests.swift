import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Histories of browser-use: a picture a step, actions and errors as labels, with the pictures in the history or beside it.
@Suite struct BrowserUseTests {
  private static let start: Int64 = 1_767_859_512_340

  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Returns a step of two seconds that began then.
  ///
  /// - Parameters:
  ///   - picture: the member of `state` that has or names it.
  ///   - actions: nil for a step in which the model failed.
  private static func step(
    _ offsetMs: Int64, _ picture: String, _ actions: String?, page: String = "https://shop.example/a?token=s3cret",
    error: String? = nil
  ) -> String {
    let seconds = { (ms: Int64) in "\(ms / 1_000).\(String(ms % 1_000 + 1_000).dropFirst())1234" }
    let output = actions.map { #"{"memory":"s3cret","action":[\#($0)]}"# } ?? "null"
    let result = error.map { #"{"error":"\#($0)"}"# } ?? #"{"is_done":false,"extracted_content":"s3cret"}"#
    return #"""
      {"model_output": \#(output), "result": [\#(result)],
       "state": {"tabs": [], \#(picture), "interacted_element": [null], "url": "\#(page)", "title": "Shop"},
       "metadata": {"step_start_time": \#(seconds(start + offsetMs)), "step_number": 1,
        "step_end_time": \#(seconds(start + offsetMs + 2_000))}, "state_message": "s3cret"}
      """#
  }

  private static func history(_ steps: [String]) -> [UInt8] {
    Array("{\n \"history\": [\(steps.joined(separator: ",\n"))]\n}".utf8)
  }

  private static let actions = [
    #"{"go_to_url":{"url":"https://user:s3cret@shop.example/a?token=s3cret#s3cret","new_tab":false}}"#,
    #"{"input_text":{"index":3,"text":"s3cret"}},{"click_element_by_index":{"index":5}}"#,
    #"{"click":{"coordinate_x":10,"coordinate_y":20}},{"send_keys":{"keys":"s3cret"}}"#,
  ]

  /// - Parameter folder: as JSON has it.
  private static func paths(_ folder: String = "/tmp/browser_use_agent_7/screenshots/") -> [UInt8] {
    history(
      actions.enumerated().map { step(Int64($0) * 5_000, #""screenshot_path":"\#(folder)step_\#($0 + 1).png""#, $1) })
  }

  private static func inside() throws -> [UInt8] {
    let image = Data(try BatchTests.jpeg).base64EncodedString()
    return history(actions.enumerated().map { step(Int64($0) * 5_000, #""screenshot":"\#(image)""#, $1) })
  }

  /// Reads a folder.
  private func read(_ files: [String: [UInt8]], in folder: String = "run") throws -> BatchReader {
    for (path, bytes) in files {
      let file = scratch.path("\(folder)/\(path)")
      try FileManager.default.createDirectory(
        atPath: (file as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try Data(bytes).write(to: URL(fileURLWithPath: file))
    }
    return try BatchReader(reading: scratch.path(folder))
  }

  private func expectRun(_ reader: BatchReader, _ sources: [String]) throws {
    let batch = reader.batch
    #expect(reader.format == "browser-use history")
    #expect(batch.frames.map { $0.timeMs - Self.start } == [0, 5_000, 10_000])
    #expect(batch.frames.map(\.source) == sources && batch.refused.isEmpty, "\(batch.refused)")
    #expect(batch.endMs == Self.start + 12_000 && batch.capture == .onChange)
    for frame in batch.frames {
      guard case .bytes(let bytes) = try reader.images(of: frame)[0] else {
        Issue.record("\(frame.source)")
        continue
      }
      #expect(try bytes == BatchTests.jpeg)
    }
    let steps = batch.labels.filter { $0.kind == "step" }
    #expect(
      steps.map(\.text) == [
        "go_to_url https://shop.example/a", "input_text 3; click_element_by_index 5", "click at 10, 20; send_keys",
      ])
    #expect(steps.map { $0.timeMs - Self.start } == [0, 5_000, 10_000])
    #expect(steps.map { ($0.endMs ?? 0) - $0.timeMs } == [2_000, 2_000, 2_000])
    let pages = batch.labels.filter { $0.kind == "page" }
    #expect(pages.map(\.text) == ["https://shop.example/a"] && pages.first?.timeMs == Self.start)
    #expect(pages.first?.data == .object(["title": .string("Shop")]))
    #expect(batch.labels.count == 4)
    #expect(!batch.labels.json.line.contains("s3cret"))
  }

  @Test func picturesInTheHistoryAreShownAtTheStartsOfTheirSteps() throws {
    let bytes = try Self.inside()
    let file = try BatchReader(reading: scratch.file("run.json", bytes))
    try expectRun(file, ["run#0", "run#1", "run#2"])
    #expect(file.batch.session.description == "run")
    // In a folder with other files of the agent.
    try expectRun(
      read(["AgentHistory.json": bytes, "data/todo.md": Array("- s3cret".utf8), "data/other.json": Array("{}".utf8)]),
      ["AgentHistory.json#0", "AgentHistory.json#1", "AgentHistory.json#2"])
  }

  @Test func picturesBesideTheHistoryAreFoundByTheirPaths() throws {
    let image = try BatchTests.jpeg
    let names = (1...3).map { "step_\($0).png" }
    var files = ["history.json": Self.paths()]
    for name in names { files["screenshots/" + name] = image }
    try expectRun(read(files), names)
    let entries = files.map { ZipArchive.Entry("agent/" + $0.key, $0.value) }
    try expectRun(BatchReader(reading: scratch.file("run.zip", ZipArchive(entries).bytes)), names)
    // Windows, and the folder of the agent below that of the history.
    var deep = ["history.json": Self.paths(#"C:\\Temp\\browser_use_agent_7\\screenshots\\"#)]
    for name in names { deep["browser_use_agent_7/screenshots/" + name] = image }
    try expectRun(read(deep, in: "deep"), names)
  }

  @Test func otherPicturesOfTheFolderAreRefused() throws {
    var files = ["history.json": Self.paths(), "agent_history.gif": Array("GIF89a".utf8)]
    for step in [1, 3] { files["screenshots/step_\(step).png"] = try BatchTests.jpeg }
    let batch = try read(files).batch
    #expect(batch.frames.count == 2)
    #expect(
      Set(batch.refused.map { "\($0.source.split(separator: "/").last ?? ""): \($0.reason)" }) == [
        "step_2.png: missing", "agent_history.gif: no picture of a step",
      ])
  }

  @Test func stepsWithoutAPictureHaveLabels() throws {
    let image = Data(try BatchTests.jpeg).base64EncodedString()
    let empty =
      "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAIAAAAmkwkpAAAAFElEQVR4nGP8//8/AwwwMSAB3BwAlm4DBfIlvvkAAAAASUVORK5CYII="
    let timeless = #"{"model_output":null,"result":[],"state":{"screenshot":"\#(image)"},"metadata":null}"#
    let long = "https://shop.example/\(String(repeating: "b", count: 600))"
    let steps = [
      Self.step(0, #""screenshot":"\#(empty)""#, Self.actions[0], page: "about:blank"), timeless,
      Self.step(3_000, #""screenshot":"\#(image)""#, nil, error: #"no\nsecond s3cret"#),
      Self.step(6_000, #""screenshot":null"#, Self.actions[1], page: long),
    ]
    let batch = try BatchReader(reading: scratch.file("run.json", Self.history(steps))).batch
    #expect(batch.frames.map { $0.timeMs - Self.start } == [3_000])
    #expect(batch.refused.map(\.reason) == ["its step tells no time"])
    let labels = batch.labels.map { "\($0.kind) \($0.timeMs - Self.start) \($0.text.prefix(22))" }
    #expect(
      labels == [
        "page 0 about:blank", "step 0 go_to_url https://shop", "page 3000 https://shop.example/a", "error 5000 no",
        "page 6000 https://shop.example/b", "step 6000 input_text 3; click_el",
      ], "\(labels)")
    #expect(batch.labels.filter { $0.level == .error }.map(\.text) == ["no"])
    // The last step ends then; an end that is no instant is none.
    #expect(batch.endMs == Self.start + 8_000)
    let late = String(decoding: Self.history(steps), as: UTF8.self)
      .replacing(#""step_end_time": 1"#, with: #""step_end_time": 91"#)
    #expect(
      try BatchReader(reading: scratch.file("late.json", Array(late.utf8))).batch.endMs == Self.start + 4_000)
    // The same, in a file beside the history.
    let png = try #require(Data(base64Encoded: empty))
    let beside = try read([
      "history.json": Self.paths(), "screenshots/step_1.png": Array(png),
      "screenshots/step_2.png": BatchTests.jpeg, "screenshots/step_3.png": BatchTests.jpeg,
    ]).batch
    #expect(beside.frames.map(\.source) == ["step_2.png", "step_3.png"] && beside.refused.isEmpty)
  }

  @Test func historyWithoutItsPicturesSaysWhereTheyAre() throws {
    let file = try scratch.file("run.json", Self.paths())
    let folder = try scratch.directory("alone")
    try scratch.file("alone/history.json", Self.paths())
    for path in [file, folder] {
      let bad = #expect(throws: BadBatch.self) { try BatchReader(reading: path) }
      #expect(bad?.cause.contains("whose pictures lie elsewhere: /tmp/browser_use_agent_7/") == true, "\(bad as Any)")
      #expect(bad?.advice.contains("screenshots/") == true)
    }
  }

  @Test func historyThatIsTooLargeForAFolderIsToBeGivenAlone() throws {
    let bytes = try Self.inside()
    var limits = Limits()
    limits.frameBytes = bytes.count - 1
    let folder = try scratch.directory("large")
    let file = try scratch.file("large/history.json", bytes)
    let bad = #expect(throws: BadBatch.self) { try BatchSessions(reading: folder, limits: limits) }
    #expect(bad?.advice.hasPrefix("give the file itself") == true, "\(bad as Any)")
    #expect(try BatchSessions(reading: file, limits: limits).readers[0].batch.frames.count == 3)
    try scratch.file("large/other.json", bytes)
    #expect(throws: BadBatch.self) { try BatchSessions(reading: folder) }
  }

  @Test func otherFilesAreNone() throws {
    let image = try BatchTests.jpeg
    // A history does not decide for pictures that it does not name.
    let plain = try read(["1767859512340.jpg": image, "history.json": Self.paths()])
    #expect(plain.format == "plain" && plain.batch.labels.isEmpty)
    let line =
      #"{"timestamp":\#(Self.start),"image":"\#(Data(image).base64EncodedString())","history":[{"state":{}}]}"#
    let lines = try BatchReader(reading: scratch.file("lines.jsonl", Array(line.utf8)))
    #expect(lines.format == "JSON lines with pictures" && lines.batch.frames.count == 1)
    for text in [#"{"history":[]}"#, #"{"history":{"state":{}}}"#, #"{"history":[{"state":{}}]}"#, #"{"history":["#] {
      #expect(throws: BadBatch.self) { try BatchReader(reading: scratch.file("x.json", Array(text.utf8))) }
    }
  }
}
