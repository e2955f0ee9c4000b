// A table of names and times. The columns are found by what most lines have in them, so that a header and further columns do not matter.

import JSON

/// Lines with the name of a picture and its time.
struct TimeTable {
  private(set) var entries: [TimeList.Entry] = []
  private(set) var faults: [TimeList.Fault] = []

  /// How lines are divided into cells.
  private enum Form: CaseIterable {
    case json, tabs, commas, semicolons, spaces
  }

  /// The places of the name and of the time.
  private struct Columns: Hashable {
    let file: Int
    let time: Int
  }

  /// Number of lines that decide the form and the columns.
  private static let sampleSize = 64
  /// Cells of a line at most.
  private static let mostCells = 64

  /// Whether the times are seconds from the beginning.
  let isRelative: Bool

  /// - Parameter zone: that of local times; nil if the user states none.
  init(_ lines: [TimeListLine], zone: ZoneRules?) throws(TimeListError) {
    var reader = TimeReader(zone: zone)
    var layout = Self.layout(of: lines.prefix(Self.sampleSize), &reader)
    isRelative = layout == nil
    if isRelative {
      reader = TimeReader(zone: nil, isRelative: true)
      layout = Self.layout(of: lines.prefix(Self.sampleSize), &reader)
    }
    guard let (form, columns) = layout else { throw Self.fault(of: lines) }
    // The other columns do not matter any more.
    reader = TimeReader(zone: zone, isRelative: isRelative)
    for (index, line) in lines.enumerated() {
      let cells = Self.cells(of: line.text, form)
      guard max(columns.file, columns.time) < cells.count, let time = reader.time(in: cells[columns.time]) else {
        let isHeader = index == 0 && !cells.contains(where: PictureNames.isPicture)
        if !isHeader {
          faults.append(TimeList.Fault(line: line.number, reason: "no time in '\(line.text.prefix(80))'"))
        }
        continue
      }
      entries.append(TimeList.Entry(line: line.number, file: cells[columns.file], time: time))
    }
    // Whole numbers may be milliseconds or numbers of pictures.
    if isRelative && !reader.hasFractions { throw Self.fault(of: lines) }
    if reader.lacksZone {
      throw TimeListError(
        cause:
          "it tells local time, not its zone; say where it was captured with --time-zone, for example --time-zone Europe/Berlin"
      )
    }
  }

  /// Returns the form and the columns with which the most lines have a name and a time; nil if none has both.
  private static func layout(
    of lines: ArraySlice<TimeListLine>, _ reader: inout TimeReader
  ) -> (Form, Columns)? {
    var best: (form: Form, columns: Columns, lines: Int)?
    for form in Form.allCases {
      var counts: [Columns: Int] = [:]
      for line in lines {
        let cells = cells(of: line.text, form)
        guard let file = cells.firstIndex(where: PictureNames.isPicture) else { continue }
        for time in cells.indices where time != file && reader.time(in: cells[time]) != nil {
          counts[Columns(file: file, time: time), default: 0] += 1
        }
      }
      // Of several times, the first column counts.
      let most = counts.max { ($0.value, $1.key.time) < ($1.value, $0.key.time) }
      if let most, most.value > best?.lines ?? 0 { best = (form, most.key, most.value) }
    }
    return best.map { ($0.form, $0.columns) }
  }

  private static func fault(of lines: [TimeListLine]) -> TimeListError {
    guard let first = lines.first else { return TimeListError(cause: "nothing in it") }
    return TimeListError(
      cause: "line \(first.number), '\(first.text.prefix(80))': no line has the name of a picture and its time; "
        + "write lines such as 'img1.png,2026-01-08T08:05:12.340Z' or 'img1.png,1767859512340'")
  }

  /// Returns the texts of a line, without quotes and spaces around them.
  private static func cells(of line: Substring, _ form: Form) -> [String] {
    switch form {
    case .json: return line.hasPrefix("{") ? values(of: line) : []
    case .tabs: return cells(of: line, at: "\t")
    case .commas: return cells(of: line, at: ",")
    case .semicolons: return cells(of: line, at: ";")
    case .spaces:
      // A date and a time of day have a space between them, and so may a name.
      let words = line.split(whereSeparator: \.isWhitespace).prefix(mostCells)
      guard let file = words.firstIndex(where: { PictureNames.isPicture(String($0)) }), words.count > 1 else {
        return []
      }
      let rest = file == 0 ? words.dropFirst() : words[..<file]
      return [String(words[file]), rest.joined(separator: " ")]
    }
  }

  /// Divides a line of CSV (RFC 4180).
  private static func cells(of line: Substring, at separator: Character) -> [String] {
    var cells = [""]
    var isQuoted = false
    for character in line {
      switch character {
      case "\"": isQuoted.toggle()
      case separator where !isQuoted:
        guard cells.count < mostCells else { return [] }
        cells.append("")
      default: cells[cells.count - 1].append(character)
      }
    }
    return cells.count > 1
      ? cells.map { String($0.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed()) } : []
  }

  /// Returns the texts and numbers of an object of JSON, in the order of its keys.
  private static func values(of line: Substring) -> [String] {
    guard let object = try? JSONParser.parse(Array(line.utf8)).object, object.count <= mostCells else { return [] }
    return object.sorted { $0.key < $1.key }.map { member in
      ((try? JSONValue.object(object).optional(member.key, .scalar)) ?? nil) ?? ""
    }
  }
}

/// Reads times of several forms. The form that was found last is tried first.
private struct TimeReader {
  private let zone: ZoneRules?
  /// Whether times are seconds from the beginning.
  private let isRelative: Bool
  private var patterns: [NamePattern]
  /// Whether a local time was found, and no zone is known.
  private(set) var lacksZone = false

  /// Whether such seconds have decimals.
  private(set) var hasFractions = false

  /// The longest recording: three years, in milliseconds.
  private static let longestMs: Int64 = 100_000_000_000

  init(zone: ZoneRules?, isRelative: Bool = false) {
    (self.zone, self.isRelative) = (zone, isRelative)
    let dates = ["%Y-%m-%d", "%Y/%m/%d", "%Y:%m:%d"]
    patterns =
      ISOTime.patterns
      + (dates.map { "\($0) %H:%M:%S[.%f][ ][%z]" } + ["%Y%m%d[_]%H%M%S[%f]", "%Y%m%d-%H%M%S"])
      .compactMap { NamePattern($0) }
  }

  mutating func time(in text: String) -> NamedTime? {
    guard let first = text.utf8.first, (48...57).contains(first), text.utf8.count <= 64 else { return nil }
    guard !isRelative else {
      guard let number = Decimal(text), let ms = number.scaled(by: 3), ms < Self.longestMs else { return nil }
      hasFractions = hasFractions || number.hasFraction
      return NamedTime(exact: ms)
    }
    if let number = Decimal(text) { if let time = Self.unixTime(number) { return time } }
    for (index, pattern) in patterns.enumerated() {
      guard let match = pattern.match(text) else { continue }
      if index > 0 { patterns.swapAt(0, index) }
      if match.needsZone, zone == nil { lacksZone = true }
      return NamedTime(match, zone: zone ?? .utc)
    }
    return nil
  }

  /// Reads unix seconds, milliseconds, microseconds or nanoseconds: only one of them is a capture of this century.
  private static func unixTime(_ number: Decimal) -> NamedTime? {
    let instants = Limits().instants
    let isWhole = !number.hasFraction
    for power in [3, 0, -3, -6] {
      guard let instant = number.scaled(by: power), instants.contains(instant) else { continue }
      return NamedTime(exact: instant, isWholeSecond: power == 3 && isWhole)
    }
    return nil
  }
}
