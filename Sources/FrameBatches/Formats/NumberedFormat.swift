// Numbered frames of any recorder: files with a number in their names, captured at a steady rate from a start that the user states.

import FileSystem

package enum NumberedFormat: BatchFormat {
  package static let name = "numbered frames"

  package static func read(_ source: BatchSource, limits: Limits) throws -> [BatchDraft]? {
    guard case .numbers(let startMs, let rate)? = source.options.times else { return nil }
    var draft = BatchDraft()
    draft.defaultCapture = .onChange
    draft.intervalMs = rate.intervalMs
    var files: [(number: Int64, path: String)] = []
    for path in source.contents.topNames {
      guard let number = number(in: path) else {
        draft.refused.append(RefusedFrame(source: path, reason: "the name has no number"))
        continue
      }
      files.append((number, path))
    }
    let numbers = files.map(\.number)
    let counter = RolledCounter(of: files.map(\.path))
    if let counter {
      draft.warnings.append(counter.warning)
      for index in files.indices { files[index].number = counter.count(files[index].number) }
    }
    if numbers.allSatisfy(limits.instants.contains), let example = files.map(\.path).min() {
      throw BadBatch(
        "read", source.name, "the names are capture times already, as \(lastComponent(of: example).shortened(to: 80))",
        advice: "leave out --start, and --fps or --interval")
    }
    let first = files.map(\.number).min() ?? 0
    for (number, path) in files.sorted(by: { ($0.number, $0.path) < ($1.number, $1.path) }) {
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

  /// Returns files in the order of the numbers in their names; nil unless the names differ in one number only.
  static func order(of frames: [Frame]) -> [Frame]? {
    var numbered: [(number: Int64, frame: Frame)] = []
    var forms: Set<String> = []
    for frame in frames {
      guard let number = number(in: frame.source) else { return nil }
      numbered.append((number, frame))
      forms.insert(form(of: frame.source))
    }
    guard forms.count == 1, Set(numbered.map(\.number)).count == numbered.count else { return nil }
    if let counter = RolledCounter(of: frames.map(\.source)) {
      for index in numbered.indices { numbered[index].number = counter.count(numbered[index].number) }
    }
    return numbered.sorted { $0.number < $1.number }.map(\.frame)
  }

  /// Returns a name without its last run of digits.
  static func form(of path: String) -> String {
    let stem = NamedTimesFormat.parts(of: path).stem
    let isDigit: (Character) -> Bool = { ("0"..."9").contains($0) }
    guard let end = stem.lastIndex(where: isDigit) else { return String(stem) }
    let start = stem[...end].lastIndex { !isDigit($0) }.map { stem.index(after: $0) } ?? stem.startIndex
    return stem[..<start] + "#" + stem[stem.index(after: end)...]
  }

  /// Returns the number in a name: its last run of digits.
  static func number(in path: String) -> Int64? { digits(in: path).flatMap { Int64($0) } }

  /// Returns the last run of digits in a name without its suffix.
  static func digits(in path: String) -> String? {
    let stem = NamedTimesFormat.parts(of: path).stem.utf8
    let isDigit: (UInt8) -> Bool = { (48...57).contains($0) }
    guard let end = stem.lastIndex(where: isDigit) else { return nil }
    return String(decoding: stem[...end].reversed().prefix(while: isDigit).reversed(), as: UTF8.self)
  }
}
