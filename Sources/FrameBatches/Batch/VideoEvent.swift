// Sentry's event about a video: rrweb's type 5 with the tag `video`. Sentry's SDKs, `run --sentry` and Sentry's API write it, alone
// or among other events, as JSON or as lines of JSON.

import JSON

package struct VideoEvent: Sendable, Equatable {
  /// When the video starts, in unix milliseconds.
  package let startMs: Int64
  /// The number of the segment in its replay; nil if the event has none.
  package let segmentID: Int64?
  /// Nominal frames a second; nil if the event has none.
  package let frameRate: Int64?
  /// Whether it says that the video lasts. iOS writes seconds, Android milliseconds.
  package let hasDuration: Bool
  /// The size of the picture as captured; nil if the event has none.
  package let width: Int64?
  package let height: Int64?
  /// The size of the video's file in bytes; nil if the event has none.
  package let bytes: Int64?
}

extension VideoEvent {
  /// The events in a file, and the reasons why others are not read.
  struct Found {
    var events: [VideoEvent] = []
    var problems: [String] = []
  }

  /// Maximum size of a file with events, in bytes.
  static let maximumBytes = 16 << 20
  /// Maximum number of lists in lists: Sentry's API answers with a list of lists.
  private static let maximumDepth = 4
  private static let maximumProblems = 20

  /// Reads the events of a file. Events of other kinds, and other JSON, are ignored.
  static func all(in bytes: [UInt8], _ limits: Limits) -> Found {
    var found = Found()
    do {
      found.add(try JSONParser.parse(bytes), limits)
    } catch {
      let lines = bytes.split(separator: UInt8(ascii: "\n")).filter { !$0.allSatisfy { $0 <= 0x20 } }
      guard lines.count > 1 else { return Found(problems: ["no JSON: \(error)"]) }
      for (number, line) in lines.enumerated() {
        do {
          found.add(try JSONParser.parse(Array(line)), limits)
        } catch {
          found.add(problem: "line \(number + 1) is no JSON: \(error)")
        }
      }
    }
    return found
  }
}

extension VideoEvent.Found {
  fileprivate mutating func add(problem: String) {
    if problems.count < VideoEvent.maximumProblems { problems.append(problem) }
  }

  fileprivate mutating func add(_ json: JSONValue, _ limits: Limits, depth: Int = 0) {
    if let list = json.array {
      guard depth < VideoEvent.maximumDepth else { return add(problem: "lists in lists, more than Sentry writes") }
      for element in list { add(element, limits, depth: depth + 1) }
      return
    }
    guard let event = json.object, event["type"]?.integer == 5, let data = event["data"]?.object,
      data["tag"]?.string == "video"
    else { return }
    guard events.count < limits.segments else {
      return add(problem: "more than the limit of \(limits.segments) video events")
    }
    let payload = data["payload"]?.object ?? [:]
    guard let startMs = event["timestamp"]?.integer, limits.instants.contains(startMs) else {
      let segment = payload["segmentId"]?.integer.map { " of segment \($0)" } ?? ""
      return add(problem: "the event\(segment) has no timestamp in unix milliseconds")
    }
    events.append(
      VideoEvent(
        startMs: startMs, segmentID: payload["segmentId"]?.integer, frameRate: payload["frameRate"]?.integer,
        hasDuration: payload["duration"]?.double.map { $0.isFinite && $0 > 0 } ?? false,
        width: payload["width"]?.integer, height: payload["height"]?.integer, bytes: payload["size"]?.integer))
  }
}
