/// Returns the most similar name; nil if none differs in a few letters only.
func nearest(_ name: String, among names: [String]) -> String? {
  let name = String(name.lowercased().map { $0 == "_" ? "-" : $0 }.drop { $0 == "-" })
  let found = names.map { ($0, changes(from: name, to: $0)) }.min { $0.1 < $1.1 }
  return found.flatMap { $0.1 <= max(1, name.count / 3) ? $0.0 : nil }
}

/// The Levenshtein distance: the number of letters to add, remove or replace.
private func changes(from name: String, to other: String) -> Int {
  var row = Array(0...other.count)
  for (index, letter) in name.enumerated() {
    var diagonal = row[0]
    row[0] = index + 1
    for (column, otherLetter) in other.enumerated() {
      let replaced = diagonal + (letter == otherLetter ? 0 : 1)
      diagonal = row[column + 1]
      row[column + 1] = min(replaced, row[column] + 1, diagonal + 1)
    }
  }
  return row[other.count]
}
