// Tables for people.

/// Aligns rows in columns; the first row has the headings.
func table(_ rows: [[String]]) -> String {
  let rows = rows.map { $0.map(\.oneLine) }
  let columns = rows.map(\.count).max() ?? 0
  let widths = (0..<columns).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
  let isNumeric = (0..<columns).map { column in
    rows.dropFirst().allSatisfy { column >= $0.count || $0[column].allSatisfy { $0.isNumber || $0 == "." } }
  }
  return rows.map { row in
    var line = ""
    for (column, text) in row.enumerated() {
      let padding = String(repeating: " ", count: widths[column] - text.count)
      line += (column > 0 ? "  " : "") + (isNumeric[column] ? padding + text : text + padding)
    }
    return String(line.reversed().drop { $0 == " " }.reversed())
  }.joined(separator: "\n")
}

/// `840 ms`, `5.0 s`, `12 min 5 s`, `2 h 20 min`, `3 d 4 h`.
func duration(ms: Int64) -> String {
  let ms = max(0, ms)
  let seconds = ms / 1_000
  func parts(_ number: Int64, _ unit: String, _ rest: Int64, _ smaller: String) -> String {
    "\(number) \(unit)" + (rest > 0 ? " \(rest) \(smaller)" : "")
  }
  return switch ms {
  case ..<1_000: "\(ms) ms"
  case ..<60_000: "\(seconds).\(ms % 1_000 / 100) s"
  case ..<3_600_000: parts(seconds / 60, "min", seconds % 60, "s")
  case ..<86_400_000: parts(seconds / 3_600, "h", seconds % 3_600 / 60, "min")
  default: parts(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h")
  }
}

/// `512 B`, `3.4 MB`, `63 MB`.
func size(_ bytes: Int) -> String {
  var (value, unit) = (Double(bytes), "B")
  for next in ["kB", "MB", "GB", "TB"] where value >= 1_000 { (value, unit) = (value / 1_000, next) }
  return unit == "B" || value >= 10 ? "\(Int(value)) \(unit)" : "\(Double(Int(value * 10)) / 10) \(unit)"
}
