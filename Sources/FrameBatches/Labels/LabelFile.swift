// A file of labels that a user names: lines of JSON, WebVTT, SRT, or a table of times and texts (CSV).

import FileSystem
import JSON

/// Labels whose times may count from the first picture.
package struct LabelFile: Sendable, Equatable {
  struct Entry: Sendable, Equatable {
    let time: SessionInstant
    let end: SessionInstant?
    let kind: String
    let text: String
    let level: Label.Level?
    let data: JSONValue?
  }

  /// The file's name in messages.
  package let name: String
  private(set) var entries: [Entry] = []
  /// The lines that are left out, with their reasons.
  private var faults: [String] = []
  private static let maximumBytes = 16 << 20
  /// Numbers of a table below this one are seconds from the first picture, and those below the other one are unix seconds.
  private static let (firstUnixSecond, firstUnixMs) = (978_307_200.0, 100_000_000_000.0)

  /// - Throws: ``InvalidOption`` for a file that cannot be read, or has no label.
  package init(reading path: String) throws(InvalidOption) {
    let bytes: [UInt8]?
    do {
      bytes = try DurableFile.contents(of: DurableFile.resolved(path), limit: Self.maximumBytes)
    } catch {
      throw InvalidOption(.labels, "\(error)")
    }
    guard let bytes else { throw InvalidOption(.labels, "\(path): no such file") }
    try self.init(bytes, name: lastComponent(of: path))
  }

  init(_ bytes: [UInt8], name: String) throws(InvalidOption) {
    self.name = name
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw InvalidOption(.labels, "\(name): not UTF-8")
    }
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated().map {
      $0.offset == 0 && $0.element.hasPrefix("\u{FEFF}") ? $0.element.dropFirst() : $0.element
    }
    if let first = lines.first(where: { !$0.allSatisfy(\.isWhitespace) }), first.hasPrefix("{") {
      readJSON(lines)
    } else if lines.contains(where: { $0.contains("-->") }) {
      readCues(lines)
    } else {
      readTable(lines)
    }
    guard !entries.isEmpty else {
      throw InvalidOption(
        .labels,
        "\(name): no label in it" + (faults.first.map { "; \($0)" } ?? "")
          + "; write lines of JSON, WebVTT, SRT, or time,text")
    }
  }

  /// Whether times count from the first picture.
  private var isRelative: Bool {
    entries.contains { if case .afterStartMs = $0.time { true } else { false } }
  }

  /// Returns the labels of a session, and how their times were read.
  ///
  /// - Parameter startMs: the capture of its first picture, in unix milliseconds.
  func labels(from startMs: Int64) -> (LabelList, note: String?) {
    var list = LabelList()
    for entry in entries {
      let label = Label(
        timeMs: entry.time.unixMs(inSessionFrom: startMs), endMs: entry.end?.unixMs(inSessionFrom: startMs),
        kind: entry.kind, text: entry.text, level: entry.level, data: entry.data)
      if let label { list.append(label) } else { list.omit("\(name): a label without a text") }
    }
    for fault in faults { list.omit("\(name), \(fault)") }
    return (list, isRelative ? "\(name): its times count from the first picture" : nil)
  }

  // MARK: - Forms

  private mutating func readJSON(_ lines: [Substring]) {
    for (index, line) in lines.enumerated() where !line.allSatisfy(\.isWhitespace) {
      do throws(JSONError) {
        let label = try Label(JSONParser.parse(Array(line.utf8)))
        entries.append(
          Entry(
            time: .unixMs(label.timeMs), end: label.endMs.map { .unixMs($0) }, kind: label.kind, text: label.text,
            level: label.level, data: label.data))
      } catch {
        faults.append("line \(index + 1): \(error)")
      }
    }
  }

  /// Reads the cues of WebVTT or SRT. All else is comment.
  private mutating func readCues(_ lines: [Substring]) {
    var index = 0
    while index < lines.count {
      defer { index += 1 }
      guard let arrow = lines[index].firstRange(of: "-->") else { continue }
      let number = index + 1
      let start = Self.clock(lines[index][..<arrow.lowerBound])
      let end = lines[index][arrow.upperBound...].split(whereSeparator: \.isWhitespace).first.flatMap { Self.clock($0) }
      var text: [Substring] = []
      while index + 1 < lines.count, !lines[index + 1].allSatisfy(\.isWhitespace) {
        index += 1
        text.append(lines[index])
      }
      guard let start, let end, end >= start else {
        faults.append("line \(number): its times are not 00:00:01.000 --> 00:00:02.000")
        continue
      }
      entries.append(
        Entry(
          time: .afterStartMs(start), end: .afterStartMs(end), kind: Label.Kind.caption,
          text: Self.plain(text.joined(separator: "\n")), level: nil, data: nil))
    }
  }

  /// Reads lines of `time,text`. A text in quotes may have commas.
  private mutating func readTable(_ lines: [Substring]) {
    for (index, line) in lines.enumerated() where !line.allSatisfy(\.isWhitespace) && !line.hasPrefix("#") {
      let comma = line.firstIndex { $0 == "," || $0 == "\t" || $0 == ";" } ?? line.endIndex
      guard comma < line.endIndex, let time = Self.time(String(line[..<comma])) else {
        // The first line may name the columns.
        if index > 0 || !entries.isEmpty { faults.append("line \(index + 1): no time,text") }
        continue
      }
      var text = line[line.index(after: comma)...]
      if text.count > 1, text.hasPrefix("\""), text.hasSuffix("\"") { text = text.dropFirst().dropLast() }
      entries.append(
        Entry(
          time: time, end: nil, kind: Label.Kind.caption, text: String(text).replacing("\"\"", with: "\""), level: nil,
          data: nil))
    }
  }

  private static func time(_ cell: String) -> SessionInstant? {
    let text = String(cell.filter { $0 != "\"" && !$0.isWhitespace })
    if let number = Double(text), number.isFinite, number >= 0 {
      if number >= firstUnixMs { return number < 0x1p42 ? .unixMs(Int64(number)) : nil }
      guard let ms = UnixTime.milliseconds(ofSeconds: text) else { return nil }
      return number >= firstUnixSecond ? .unixMs(ms) : .afterStartMs(ms)
    }
    return clock(text[...]).map { .afterStartMs($0) } ?? SessionInstant(text)
  }

  /// Reads `01:02:03.500`, `02:03,500` or `02:03`, in milliseconds.
  private static func clock(_ text: some StringProtocol) -> Int64? {
    let parts = String(text.filter { !$0.isWhitespace }).split(separator: ":", omittingEmptySubsequences: false)
    guard (2...3).contains(parts.count) else { return nil }
    let seconds = parts[parts.count - 1].split(whereSeparator: { $0 == "." || $0 == "," })
    guard (1...2).contains(seconds.count), seconds.count == 1 || (1...3).contains(seconds[1].count) else { return nil }
    let fraction = seconds.count == 2 ? String(seconds[1]) + String(repeating: "0", count: 3 - seconds[1].count) : "0"
    let numbers = (parts.dropLast().map(String.init) + [String(seconds[0]), fraction]).map { part in
      part.isDecimal && (1...6).contains(part.utf8.count) ? Int64(part) : nil
    }
    guard numbers.allSatisfy({ $0 != nil }) else { return nil }
    let whole = numbers.compactMap(\.self)
    return whole.dropLast().reduce(0) { $0 * 60 + $1 } * 1_000 + whole[whole.count - 1]
  }

  /// Returns the text of a cue without markup.
  private static func plain(_ text: String) -> String {
    var (plain, isTag) = ("", false)
    for character in text {
      if character == "<" {
        isTag = true
      } else if isTag {
        isTag = character != ">"
      } else {
        plain.append(character)
      }
    }
    for (name, character) in [("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&lrm;", ""), ("&rlm;", "")] {
      plain = plain.replacing(name, with: character)
    }
    return plain.replacing("&amp;", with: "&")
  }
}
