// The actions and errors of Playwright's traces, as labels. Some parts may be secret, and are left out: typed texts, queries and
// fragments of addresses, headers, and all of an error behind its first line.

import FileSystem
import JSON

/// The labels of all traces of a batch.
struct PlaywrightSteps {
  /// The types of lines that it reads.
  static let types: Set = ["before", "after", "console", "event", "error"]

  private struct Step {
    let startMs: Int64
    let title: String
    /// The hexadecimal part of the page's ID; nil if the action names none.
    let page: String?
    /// The step of the test runner that this action of the browser belongs to: that one has the better name.
    let runnerStep: String?
    var endMs: Int64?
    var error: String?
  }

  private struct Event {
    let page: String?
    let label: Label
  }

  /// By the calls' IDs.
  private var steps: [String: Step] = [:]
  private var events: [Event] = []
  private var omitted = 0

  /// Adds a line of a trace.
  mutating func add(_ type: String, _ members: [String: JSONValue], of trace: PlaywrightTrace) {
    guard steps.count + events.count < 2 * LabelList.maximumCount else {
      omitted += type == "after" ? 0 : 1
      return
    }
    let call = members["callId"]?.string ?? ""
    switch type {
    case "before":
      guard let startMs = trace.unixMs(members["startTime"]), !call.isEmpty else { return }
      steps[call] = Step(
        startMs: startMs, title: Self.title(of: members), page: PlaywrightTrace.page(members["pageId"]),
        runnerStep: members["stepId"]?.string)
    case "after":
      steps[call]?.endMs = trace.unixMs(members["endTime"])
      steps[call]?.error = members["error"].flatMap { error in
        error == .null ? nil : LabelText.firstLine(of: Self.message(of: error))
      }
    case "console":
      guard members["messageType"] == .string("error") else { return }
      note(members["text"]?.string ?? "", at: trace.unixMs(members["time"]), PlaywrightTrace.page(members["pageId"]))
    case "event":
      guard members["method"] == .string("pageError"), let error = members["params"]?.object?["error"] else { return }
      let page = PlaywrightTrace.page(members["pageId"] ?? members["params"]?.object?["pageId"])
      note(Self.message(of: error), at: trace.unixMs(members["time"]), page)
    default:
      note(members["message"]?.string ?? "", at: trace.unixMs(members["time"]), nil)
    }
  }

  private mutating func note(_ text: String, at timeMs: Int64?, _ page: String?) {
    let text = LabelText.firstLine(of: text)
    guard let timeMs, let label = Label(timeMs: timeMs, kind: Label.Kind.error, text: text, level: .error) else {
      return
    }
    events.append(Event(page: page, label: label))
  }

  /// Returns the labels of a page, with those that name no page.
  func labels(ofPage page: String) -> LabelList {
    // The test runner has a step for each action of the browser.
    let known = Set(steps.keys)
    var all = events.filter { $0.page == nil || $0.page == page }.map(\.label)
    for step in steps.values where step.page == nil || step.page == page {
      if let runner = step.runnerStep, known.contains(runner) { continue }
      let level: Label.Level? = step.error == nil ? nil : .error
      guard
        let label = Label(
          timeMs: step.startMs, endMs: step.endMs, kind: Label.Kind.step, text: step.title, level: level)
      else { continue }
      all.append(label)
      if let error = step.error {
        let failed = Label(timeMs: step.endMs ?? step.startMs, kind: Label.Kind.error, text: error, level: .error)
        if let failed { all.append(failed) }
      }
    }
    var list = LabelList()
    for label in all.sorted(by: { ($0.timeMs, $0.kind, $0.text) < ($1.timeMs, $1.kind, $1.text) }) {
      list.append(label)
    }
    list.omit("the trace has more actions", count: omitted)
    return list
  }

  // MARK: - Texts

  private static func title(of members: [String: JSONValue]) -> String {
    if let title = members["title"]?.string, !title.isEmpty { return safe(title) }
    let method = members["method"]?.string ?? members["apiName"]?.string ?? "action"
    let parameters = members["params"]?.object
    let place = parameters?["selector"]?.string ?? parameters?["url"]?.string
    return place.map { "\(method) \(LabelText.withoutSecrets($0))" } ?? method
  }

  /// Returns the title of a step without the text that it types, and without queries.
  private static func safe(_ title: String) -> String {
    let line = LabelText.firstLine(of: title)
    let verbs = ["fill", "type", "press", "insert", "select", "set"]
    let start = line.lowercased()
    guard verbs.contains(where: { start.hasPrefix($0) || start.contains(".\($0)") }),
      let first = line.firstIndex(of: "\""), let last = line[line.index(after: first)...].firstIndex(of: "\"")
    else { return LabelText.withoutSecrets(line) }
    return LabelText.withoutSecrets("\(line[..<first])…\(line[line.index(after: last)...])")
  }

  /// Returns the message of an error, which newer versions nest.
  private static func message(of error: JSONValue) -> String {
    let inner = error.object?["error"] ?? error
    let (name, message) = (inner.object?["name"]?.string, inner.object?["message"]?.string ?? inner.string ?? "")
    return name.map { message.hasPrefix($0) ? message : "\($0): \(message)" } ?? message
  }
}
