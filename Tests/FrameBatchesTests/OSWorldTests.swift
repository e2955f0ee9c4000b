import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Trajectories of OSWorld: the lines beside the pictures are labels.
@Suite struct OSWorldTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Returns a line of an action.
  ///
  /// - Parameter action: in JSON.
  private static func line(_ step: Int, _ stamp: String, _ action: String, hasPicture: Bool = true) -> String {
    let picture = hasPicture ? #","screenshot_file":"step_\#(step)_\#(stamp).png""# : ""
    return #"{"step_num":\#(step),"action_timestamp":"\#(stamp)","action":\#(action),"response":"s3cret","reward":0,"#
      + #""done":false,"info":{"s3cret":1}\#(picture)}"#
  }

  private func read(_ names: [String], _ lines: [String], zone: String = "UTC") throws -> BatchReader {
    let folder = try scratch.directory("run")
    for name in names { try scratch.file("run/" + name, BatchTests.jpeg) }
    try scratch.file("run/traj.jsonl", Array(lines.joined(separator: "\n").utf8))
    for name in ["result.txt", "runtime.log", "args.json"] { try scratch.file("run/" + name, [0x31]) }
    var options = InputOptions()
    options.timeZone = try ZoneRules(named: zone)
    return try BatchSessions(reading: folder, options: options).readers[0]
  }

  @Test func actionsAreStepsAtTheTimesOfTheirPictures() throws {
    let stamps = ["20260108@080512123456", "20260108@080515500000"]
    let reader = try read(
      stamps.enumerated().map { "step_\($0 + 1)_\($1).png" },
      [
        Self.line(1, stamps[0], #""import pyautogui; pyautogui.click(100, 200)""#),
        Self.line(2, stamps[1], #""pyautogui.typewrite('s3cret')""#),
        #"{"Error":"Time limit exceeded"}"#, "no line", "",
        Self.line(3, "20260108@080520", #""DONE""#, hasPicture: false),
      ])
    let batch = reader.batch
    #expect(reader.format == "OSWorld trajectory" && batch.refused.isEmpty, "\(batch.refused)")
    #expect(batch.frames.map(\.timeMs) == [1_767_859_512_123, 1_767_859_515_500])
    #expect(batch.labels.map(\.text) == ["click at 100, 200", "typewrite", "DONE"])
    #expect(batch.labels.map(\.timeMs) == [1_767_859_512_123, 1_767_859_515_500, 1_767_859_520_000])
    #expect(batch.labels.allSatisfy { $0.kind == "step" })
  }

  /// Pictures of one second are spread over it. So are their actions.
  @Test func actionsOfOneSecondFollowTheirPictures() throws {
    let names = ["step_1_20260108@090512", "step_2_20260108@090512"]
    let lines = (1...2).map { Self.line($0, "20260108@090512", #""WAIT""#) }
    let batch = try read(names.map { $0 + ".png" }, lines, zone: "+01:00").batch
    #expect(batch.frames.map(\.timeMs) == [1_767_859_512_000, 1_767_859_512_500])
    #expect(batch.labels.map(\.timeMs) == batch.frames.map(\.timeMs))
  }

  @Test func otherFoldersKeepTheirForm() throws {
    let reader = try read(["1767859512340.jpg"], [Self.line(1, "20260108@080512", #""WAIT""#)])
    #expect(reader.format == "plain" && reader.batch.labels.isEmpty)
  }

  @Test(arguments: [
    (#""pyautogui.click(x=100, y=200.4, clicks=2)""#, "click at 100, 200"),
    (
      #""import pyautogui\nimport time\npyautogui.moveTo(-1, 2)\ntime.sleep(3)\npyautogui.dragTo(3, 4, duration=1)""#,
      "moveTo at -1, 2; dragTo at 3, 4"
    ),
    (#""pyautogui.write(\"s3 ' cret\", interval=0.1); pyautogui.press('s3cret')""#, "write; press"),
    (#""pyautogui.write(1234, 5678)""#, "write"), (#""pyautogui.hotkey('ctrl', 's3cret')""#, "hotkey"),
    (#""pyautogui.write('''s3cret' pyautogui.click(1, 2)\n''')  # s3cret pyautogui.scroll(1)""#, "write"),
    (#""pyautogui.write('it\\'s s3cret') ; pyautogui.scroll(-5)""#, "write; scroll"),
    (#""pyautogui.write('s3cret pyautogui.click(1, 2)""#, "write"),
    (#""agent.click('s3cret', 1)""#, "agent.click"), (#""just s3cret text""#, "code"), (#""FAIL""#, "FAIL"),
    (#""\#(String(repeating: "pyautogui.click();", count: 7))""#, "click; click; click; click; click; …"),
    (#"{"action_type":"CLICK","x":10,"y":20}"#, "CLICK at 10, 20"),
    (#"{"action_type":"TYPING","parameters":{"text":"s3cret"}}"#, "TYPING"),
    (#"{"action_type":"MOVE_TO","parameters":{"x":1.5,"y":2}}"#, "MOVE_TO at 2, 2"),
    (
      #"{"name":"computer","input":{"action":"left_click","coordinate":[7,8]},"action_type":"tool_use"}"#,
      "left_click at 7, 8"
    ),
    (#"{"name":"computer","input":{"action":"type","text":"s3cret"}}"#, "type"),
    (
      #"{"action_space":"pyautogui","action":"import pyautogui\npyautogui.doubleClick(5, 6)","call_id":"s3cret"}"#,
      "doubleClick at 5, 6"
    ),
    (
      #"{"action_type":"tool_use","command":"pyautogui.rightClick(5, 6)","raw_response":"s3cret"}"#,
      "rightClick at 5, 6"
    ),
  ])
  func actionIsNamedWithoutItsTexts(action: String, text: String) throws {
    let batch = try read(["step_1_20260108@080512.png"], [Self.line(1, "20260108@080512", action)]).batch
    #expect(batch.labels.map(\.text) == [text])
  }

  @Test(arguments: ["7", "null", "[]", "{}", #""""#, #"{"action":7}"#])
  func otherActionsAreNone(action: String) throws {
    let batch = try read(["step_1_20260108@080512.png"], [Self.line(1, "20260108@080512", action)]).batch
    #expect(batch.labels.isEmpty && batch.frames.count == 1)
  }
}
