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

/// `5 s`, `12 min`, `3 h`, `2 d`.
func age(ms: Int64) -> String {
  let seconds = max(0, ms) / 1_000
  return switch seconds {
  case ..<120: "\(seconds) s"
  case ..<7_200: "\(seconds / 60) min"
  case ..<172_800: "\(seconds / 3_600) h"
  default: "\(seconds / 86_400) d"
  }
}

/// `512 B`, `3.4 GB`.
func size(_ bytes: Int) -> String {
  var (value, unit) = (Double(bytes), "B")
  for next in ["kB", "MB", "GB", "TB"] where value >= 1_000 { (value, unit) = (value / 1_000, next) }
  return unit == "B" ? "\(bytes) B" : "\(Double(Int(value * 10)) / 10) \(unit)"
}
