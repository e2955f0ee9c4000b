// Numbered frames of any recorder: files with a number in their names, captured at a steady rate from a start that the user states.

import FileSystem

package enum NumberedFormat: BatchFormat {
  package static let name = "numbered frames"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard case .numbers(let startMs, let rate)? = source.options.times else { return nil }
    var draft = BatchDraft()
    draft.defaultCapture = .onChange
    draft.intervalMs = rate.intervalMs
    var files: [Int64: String] = [:]
    for path in source.contents.topNames {
      guard let number = number(in: path) else {
        draft.refused.append(RefusedFrame(source: path, reason: "the name has no number"))
        continue
      }
      if let other = files.updateValue(path, forKey: number) {
        draft.refused.append(RefusedFrame(source: other, reason: "\(lastComponent(of: path)) has the same number"))
      }
    }
    if !files.isEmpty, files.keys.allSatisfy(limits.instants.contains), let example = files.values.min() {
      throw BadBatch(
        "read", source.name, "the names are capture times already, as \(lastComponent(of: example).shortened(to: 80))",
        advice: "leave out --start, and --fps or --interval")
    }
    let first = files.keys.min() ?? 0
    for (number, path) in files.sorted(by: { $0.key < $1.key }) {
      guard let offsetMs = rate.offsetMs(of: number - first),
        case (let timeMs, let isTooLarge) = startMs.addingReportingOverflow(offsetMs), !isTooLarge
      else {
        draft.refused.append(RefusedFrame(source: path, reason: "number \(number) is too large"))
        continue
      }
      draft.frames.append(Frame(source: lastComponent(of: path), path: path, timeMs: timeMs))
    }
    return [draft]
  }

  /// Returns the last run of digits in a name without its suffix.
  static func number(in path: String) -> Int64? {
    let stem = NamedTimesFormat.parts(of: path).stem.utf8
    let isDigit: (UInt8) -> Bool = { (48...57).contains($0) }
    guard let end = stem.lastIndex(where: isDigit) else { return nil }
    let digits = stem[...end].reversed().prefix(while: isDigit).reversed()
    return Int64(String(decoding: digits, as: UTF8.self))
  }
}
