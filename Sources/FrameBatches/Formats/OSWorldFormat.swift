// OSWorld: pictures `step_<n>_<time>.png`, and `traj.jsonl` with a line for each action: {"step_num":1,"action_timestamp":
// "20260108@080512123456","action":…,"screenshot_file":"step_1_….png"}. The action is Python's code, a word, or an object. The names of the
// pictures tell their times, as without the lines.

import FileSystem
import JSON

package enum OSWorldFormat: BatchFormat {
  package static let name = "OSWorld trajectory"

  private static let trajectory = "traj.jsonl"
  /// Of `action_timestamp`.
  private static let patterns = ["%Y%m%d@%H%M%S%f", "%Y%m%d@%H%M%S"].compactMap { NamePattern($0) }

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    let trajectories = source.contents.names.filter { lastComponent(of: $0) == trajectory }
    guard !trajectories.isEmpty, var drafts = try NamedTimesFormat.read(source, limits: limits), drafts.count == 1,
      drafts[0].frames.contains(where: { $0.source.hasPrefix("step_") })
    else { return nil }
    let times = Dictionary(drafts[0].frames.map { ($0.paths[0], $0.timeMs) }) { first, _ in first }
    for path in trajectories {
      let folder = String(path.dropLast(trajectory.utf8.count))
      guard case .bytes(let bytes)? = try source.contents.contents(of: path, limit: limits.frameBytes) else { continue }
      for line in bytes.split(separator: UInt8(ascii: "\n")) where line.count <= limits.jsonBytes {
        guard let record = (try? JSONParser.parse(Array(line)))?.object,
          let action = record["action"].flatMap(text)
        else { continue }
        // The name of the picture that shows what the action did has the time before the action.
        let picture = (record["screenshot_file"] ?? record["screenshot_file_before_exec"])?.string
        guard let timeMs = picture.flatMap({ times[folder + $0] }) ?? instant(record, source.options.timeZone),
          let label = Label(timeMs: timeMs, kind: Label.Kind.step, text: action)
        else { continue }
        drafts[0].labels.append(label)
      }
    }
    // Beside the lines are settings, a log and the result.
    let others = Set(source.contents.names.filter { !PictureNames.canBePicture($0) })
    drafts[0].refused.removeAll { others.contains($0.source) }
    drafts[0].sideFiles.formUnion(others)
    return drafts
  }

  private static func instant(_ record: [String: JSONValue], _ zone: ZoneRules?) -> Int64? {
    guard let text = record["action_timestamp"]?.string else { return nil }
    return patterns.lazy.compactMap { $0.match(text) }.first.flatMap { NamedTime($0, zone: zone)?.instants.first }
  }

  /// Returns what was done; nil for another value.
  private static func text(of action: JSONValue) -> String? {
    if let code = action.string { return code.isEmpty ? nil : AgentAction.text(ofCode: code) }
    guard let members = action.object else { return nil }
    let arguments = (members["input"] ?? members["parameters"])?.object ?? members
    let verbs = [arguments["action"], members["action_type"], members["type"], members["command"], members["name"]]
    guard let verb = verbs.lazy.compactMap({ $0?.string }).first(where: { !$0.isEmpty && $0 != "tool_use" }) else {
      return nil
    }
    return AgentAction.text(AgentAction.text(ofCode: verb), at: arguments)
  }
}
