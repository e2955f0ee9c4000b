/// Returns the most similar name; nil if none differs in a few letters only.
func nearest(_ name: String, among names: [String]) -> String? {
  let name = String(name.lowercased().map { $0 == "_" ? "-" : $0 }.drop { $0 == "-" })
  let found = names.map { ($0, changes(from: name, to: $0)) }.min { $0.1 < $1.1 }
  return found.flatMap { $0.1 <= max(1, name.count / 3) ? $0.0 : nil }
}

/// The number of letters to add, remove or replace, and of neighbours to swap (optimal string alignment).
private func changes(from name: String, to other: String) -> Int {
  let (name, other) = (Array(name), Array(other))
  var (before, row) = ([Int](), Array(0...other.count))
  for index in name.indices {
    var next = [index + 1]
    for column in other.indices {
      var least = min(row[column] + (name[index] == other[column] ? 0 : 1), next[column] + 1, row[column + 1] + 1)
      if index > 0, column > 0, name[index] == other[column - 1], name[index - 1] == other[column] {
        least = min(least, before[column - 1] + 1)
      }
      next.append(least)
    }
    (before, row) = (row, next)
  }
  return row[other.count]
}
