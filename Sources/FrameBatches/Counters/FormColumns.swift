import FileSystem

/// The runs of digits in names of one form, as columns of numbers.
struct FormColumns {
  /// The names, without further ones of the same key.
  let rows: [NumberedName]
  /// The row of each key.
  private(set) var row: [Substring: Int] = [:]
  /// The columns in which the names differ.
  private(set) var columns: [CounterColumn] = []
  /// Whether the names differ in one run of digits only.
  private(set) var hasOneVariable = false

  private init(rows names: [NumberedName]) {
    var row: [Substring: Int] = [:]
    rows = names.filter { name in
      guard row[name.key] == nil else { return false }
      row[name.key] = row.count
      return true
    }
    self.row = row
  }

  /// - Parameter names: of one form; at least one.
  init(of names: [NumberedName]) {
    self.init(rows: names)
    let first = rows[0]
    let places = first.runs.indices
    let variable = places.filter { place in rows.contains { $0.runs[place] != first.runs[place] } }
    // A picture alone is numbered by any number.
    let counted = rows.count == 1 ? Array(places.suffix(1)) : variable
    hasOneVariable = counted.count == 1
    let files = rows.map { lastComponent(of: $0.path) }
    for place in counted {
      let pattern = first.pattern(places.map { $0 == place ? "%q" : variable.contains($0) ? "%*" : nil })
      columns += CounterColumn(rows.map { $0.runs[place] }, of: files, pattern: pattern).map { [$0] } ?? []
    }
    columns += Self.decimals(of: rows, variable)
  }

  /// The first and the last numbers in names of several forms.
  static func atEnds(of names: [NumberedName]) -> FormColumns {
    var form = FormColumns(rows: names)
    let files = form.rows.map { lastComponent(of: $0.path) }
    let ends = [(form.rows.compactMap(\.runs.first), "%*%q%*"), (form.rows.compactMap(\.runs.last), "%*%q")]
    form.columns = ends.compactMap { CounterColumn($0.0, of: files, pattern: $0.1) }
    return form
  }

  /// Numbers with a point, such as `0.5`.
  private static func decimals(of rows: [NumberedName], _ variable: [Int]) -> [CounterColumn] {
    let texts = rows[0].form.split(separator: "#", omittingEmptySubsequences: false)
    return rows[0].runs.indices.dropLast().compactMap { place in
      guard texts[place + 1] == ".", variable.contains(place) || variable.contains(place + 1) else { return nil }
      return CounterColumn(whole: rows.map { $0.runs[place] }, decimals: rows.map { $0.runs[place + 1] })
    }
  }

  /// Returns the column that is the counter; nil if none can be.
  ///
  /// - Throws: ``CounterFault`` if several can be, and put the names in different orders.
  func counter() throws(CounterFault) -> CounterColumn? {
    let distinct = columns.filter(\.isDistinct)
    for kind in [\CounterColumn.isEven, \.isDense] {
      let found = distinct.filter { $0[keyPath: kind] }
      guard let best = found.max(by: { $0.density < $1.density }) else { continue }
      guard found.allSatisfy({ $0.isOrdered(as: best) }) else { throw CounterFault(several: found, self) }
      return best
    }
    // Names that differ in one number have one order. The pauses between them are said.
    guard hasOneVariable, let only = distinct.first else { return nil }
    return only.withoutGroup ?? only
  }

  /// Returns the patterns that read a number of its own in each name.
  func tried(_ columns: [CounterColumn]) -> [String] {
    columns.compactMap(\.pattern).filter { text in
      guard let pattern = NamePattern(text) else { return false }
      var known: Set<Int64> = []
      return rows.allSatisfy { row in pattern.match(row.key)?.sequence.map { known.insert($0).inserted } ?? false }
    }
  }
}
