import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import JSON

/// Actions and errors of Playwright's traces become labels, without what may be secret.
@Suite struct PlaywrightStepTests {
  private static let pages = ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"]
  private static let startMs: Int64 = 1_767_859_512_000
  private static let head =
    #"{"version":10,"type":"context-options","wallTime":1767859512000,"monotonicTime":100.5}"#

  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func batches(_ traces: [String: [String]]) throws -> [Batch] {
    let image = try BatchTests.jpeg
    var traces = traces
    for page in Self.pages {
      let picture = "screencast/page@\(page)-\(Self.startMs).jpeg"
      traces["trace.trace", default: [Self.head]].append(
        #"{"type":"screencast-frame","pageId":"page@\#(page)","file":"\#(picture)","timestamp":100.5}"#)
    }
    let files =
      traces.map { ZipArchive.Entry($0.key, Array($0.value.joined(separator: "\n").utf8)) }
      + Self.pages.map { ZipArchive.Entry("screencast/page@\($0)-\(Self.startMs).jpeg", image) }
    return try BatchSessions(reading: scratch.file("trace.zip", ZipArchive(files).bytes)).readers.map(\.batch)
  }

  private func labels(_ lines: [String], page: Int = 0) throws -> [Label] {
    try batches(["trace.trace": [Self.head] + lines])[page].labels
  }

  private func before(_ call: String, _ rest: String, at time: Double = 110.5) -> String {
    #"{"type":"before","callId":"\#(call)","startTime":\#(time),"class":"Frame",\#(rest)}"#
  }

  @Test func actionsAreStepsAtTheirInstants() throws {
    let all = try labels([
      before("a", ##""method":"click","params":{"selector":"#add"}"##),
      #"{"type":"after","callId":"a","endTime":150.7}"#,
      before("b", #""method":"goto","params":{"url":"https://example.org/cart?token=x#y"}"#, at: 200.9),
      before("c", #""title":"Add to cart","method":"click""#, at: 300.5),
    ])
    #expect(all.map(\.text) == ["click #add", "goto https://example.org/cart…", "Add to cart"])
    #expect(all.map { $0.timeMs - Self.startMs } == [10, 100, 200])
    #expect(all.map { $0.endMs.map { $0 - Self.startMs } } == [50, nil, nil])
    #expect(all.allSatisfy { $0.kind == "step" && $0.level == nil })
  }

  @Test func failuresAreErrors() throws {
    let all = try labels([
      before("a", #""method":"click""#),
      #"{"type":"after","callId":"a","endTime":160.5,"error":{"name":"TimeoutError","message":"click: Timeout\nCall log:\n secret"}}"#,
      #"{"type":"console","messageType":"error","text":"\u001b[31mfailed\u001b[39m https://a.example/?q=1","time":170.5}"#,
      #"{"type":"console","messageType":"log","text":"no","time":171.5}"#,
      #"{"type":"event","method":"pageError","params":{"error":{"error":{"name":"Error","message":"boom"}}},"time":180.5}"#,
      #"{"type":"event","method":"page","params":{},"time":181.5}"#,
    ])
    #expect(
      all.map(\.text) == ["click", "TimeoutError: click: Timeout", "failed https://a.example/…", "Error: boom"])
    #expect(all.map { $0.timeMs - Self.startMs } == [10, 60, 70, 80])
    #expect(all.map(\.level) == [.error, .error, .error, .error])
    #expect(all.map(\.kind) == ["step", "error", "error", "error"])
  }

  @Test(arguments: [
    (#""title":"Fill \"s3cret\" getByLabel('Password')","method":"fill""#, "Fill … getByLabel('Password')"),
    (#""title":"locator.fill(\"s3cret\")","method":"fill""#, "locator.fill(…)"),
    (#""title":"Navigate to \"/login?token=s3cret\"","method":"goto""#, "Navigate to \"/login…"),
    (##""method":"fill","params":{"selector":"#password","value":"s3cret"}"##, "fill #password"),
    (#""method":"setExtraHTTPHeaders","params":{"headers":[{"name":"a","value":"s3cret"}]}"#, "setExtraHTTPHeaders"),
    (#""method":"evaluate","params":{"expression":"s3cret","arg":"s3cret"}"#, "evaluate"),
  ])
  func secretsOfTracesAreLeftOut(_ rest: String, _ text: String) throws {
    let all = try labels([before("a", rest)])
    #expect(all.map(\.text) == [text])
    #expect(!String(decoding: all[0].json.bytes(), as: UTF8.self).contains("s3cret"))
  }

  @Test func stepsOfTheRunnerReplaceTheirActions() throws {
    let test = [
      Self.head, before("pw@1", #""method":"pw:api","title":"Click getByRole('button')""#),
      before("t@2", #""method":"step","title":"Pay""#, at: 120.5),
    ]
    let trace = [Self.head, before("call@7", #""method":"click","stepId":"pw@1""#, at: 111.5)]
    let all = try batches(["test.trace": test, "trace.trace": trace])[0].labels
    #expect(all.map(\.text) == ["Click getByRole('button')", "Pay"])
  }

  /// An action that names no page may belong to any.
  @Test func actionsBelongToTheirPages() throws {
    let lines = [
      before("a", #""method":"one","pageId":"page@\#(Self.pages[0])""#),
      before("b", #""method":"two","pageId":"page@\#(Self.pages[1])""#), before("c", #""method":"both""#),
    ]
    #expect(try labels(lines).map(\.text) == ["both", "one"])
    #expect(try labels(lines, page: 1).map(\.text) == ["both", "two"])
  }

  @Test func linesThatAreNoActionsDoNoHarm() throws {
    let lines = [
      #"{"type":"before"}"#, #"{"type":"before","callId":"a"}"#, #"{"type":"before","callId":"a","startTime":1e300}"#,
      #"{"type":"after","callId":"none"}"#, #"{"type":"before",[}"#, #"{"type":"console","time":1}"#,
      #"{"type":"error","message":"x"}"#, #"{"type":"event","method":"pageError","params":{"error":5}}"#,
    ]
    #expect(try labels(lines).isEmpty)
  }
}
