import FileSystem

/// The reason why the names of numbered pictures tell no order.
struct CounterFault: Error {
  let cause: String
  /// Patterns that each read a number of its own in all names.
  private(set) var patterns: [String] = []
  /// The sources of the pictures, if there are several.
  private(set) var series: [NameSeries] = []

  /// Several columns count, in different orders.
  init(several columns: [CounterColumn], _ form: FormColumns) {
    cause = "\(columns.count) numbers in the names can be the counter, as in '\(Self.example(form))'"
    patterns = form.tried(columns)
  }

  /// No column is the counter.
  ///
  /// - Parameter isOneForm: whether the names have one form, so that a number may order them although it is no counter.
  init(noneOf form: FormColumns, isOneForm: Bool) {
    let distinct = form.columns.filter(\.isDistinct)
    cause =
      distinct.isEmpty
      ? "no number differs in all names, as in '\(Self.example(form))'"
      : "the numbers in the names, as in '\(Self.example(form))', are too far apart for a counter"
    patterns = isOneForm ? form.tried(distinct) : []
  }

  /// The pictures are of several sources.
  init(series: [NameSeries]) {
    cause =
      "pictures of several sources: "
      + series.map { "\($0.paths.count) are \($0.glob.shortened(to: 80))" }.joined(separator: ", ")
    self.series = series
  }

  private static func example(_ form: FormColumns) -> String { lastComponent(of: form.rows[0].path).shortened(to: 80) }
}
