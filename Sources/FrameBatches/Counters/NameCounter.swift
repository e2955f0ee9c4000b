// Finds the counter in the names of numbered pictures. All names decide: the counter is the run of digits that differs in all of
// them and leaves out few numbers. Where none or several are such a run, nothing is guessed.

import FileSystem

/// The counter of numbered pictures.
struct NameCounter {
  /// The place of each picture that has one, by path, counted from the lowest number.
  private(set) var places: [String: Int64] = [:]
  /// Pictures whose names have another form.
  private(set) var refused: [RefusedFrame] = []
  private(set) var warnings: [String] = []

  /// - Parameter paths: of pictures.
  /// - Throws: ``CounterFault`` if no run of digits, or more than one, can be the counter.
  init(of paths: [String]) throws(CounterFault) {
    var numbered: [NumberedName] = []
    for name in paths.map(NumberedName.init) {
      if name.runs.isEmpty {
        refused.append(RefusedFrame(source: name.path, reason: "the name has no number", kind: .otherName))
      } else if name.runs.allSatisfy({ $0.utf8.count > CounterColumn.mostDigits }) {
        refused.append(RefusedFrame(source: name.path, reason: "the number in the name is too large", kind: .otherName))
      } else {
        numbered.append(name)
      }
    }
    guard !numbered.isEmpty else { return }
    let forms = Dictionary(grouping: numbered, by: \.form).values.sorted {
      ($1.count, $0[0].form) < ($0.count, $1[0].form)
    }
    let hasMost = 2 * forms[0].count > numbered.count
    if !hasMost || forms.dropFirst().contains(where: { NameSeries.isLarge($0, of: numbered.count) }) {
      // One counter over names of several forms: the steps of a test, `01_login` and `02_cart`.
      let ends = FormColumns.atEnds(of: numbered)
      if let counter = try ends.counter() {
        count(numbered, by: counter, ends)
        return
      }
      let series = NameSeries.ofForms(forms)
      if series.count > 1 { throw CounterFault(series: series) }
      if !hasMost { throw CounterFault(noneOf: ends, isOneForm: false) }
    }
    let columns = FormColumns(of: forms[0])
    guard let counter = try columns.counter() else {
      let series = NameSeries.ofColumns(forms[0])
      throw series.count > 1 ? CounterFault(series: series) : CounterFault(noneOf: columns, isOneForm: true)
    }
    count(forms[0], by: counter, columns)
    refused += forms.dropFirst().joined().map {
      RefusedFrame(
        source: $0.path, reason: "the name is not of the form \(forms[0][0].form.shortened(to: 80)), as most names are",
        kind: .otherName)
    }
  }

  private mutating func count(_ names: [NumberedName], by counter: CounterColumn, _ columns: FormColumns) {
    let (places, warnings) = counter.places(columns.rows.map { lastComponent(of: $0.path) })
    self.warnings += warnings
    for name in names {
      if let row = columns.row[name.key] { self.places[name.path] = places[row] }
    }
  }
}
