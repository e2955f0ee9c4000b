import FileSystem

/// Pictures of one source among those of others, such as one of two cameras that write into one folder.
struct NameSeries: Sendable {
  let paths: [String]
  /// The names of the series as a shell's pattern of files.
  let glob: String

  /// Pictures that make a series, beside other pictures.
  private static let least = 3
  /// More sources than a folder has; a column with more values is no source.
  private static let most = 16

  /// Whether the names of a form are so many that they are no strays.
  static func isLarge(_ form: [NumberedName], of total: Int) -> Bool { form.count >= least && 10 * form.count >= total }

  /// Returns the series among names of several forms: those with a counter of their own.
  static func ofForms(_ forms: [[NumberedName]]) -> [NameSeries] {
    let total = forms.reduce(0) { $0 + $1.count }
    let large = forms.filter { isLarge($0, of: total) }
    return large.filter(isCounted).map { NameSeries($0) }
  }

  /// Returns the series among names of one form: by the run of digits that has few values, each with a counter of its own.
  static func ofColumns(_ names: [NumberedName]) -> [NameSeries] {
    for place in names[0].runs.indices {
      let groups = Dictionary(grouping: names) { $0.runs[place] }
      guard (2...most).contains(groups.count), groups.values.allSatisfy({ $0.count >= least && isCounted($0) })
      else { continue }
      return groups.sorted { $0.key < $1.key }.map { NameSeries($0.value, constant: place) }
    }
    return []
  }

  /// Returns the series among names of one form or several; one or none if they are of one source.
  static func ofNames(_ paths: [String]) -> [NameSeries] {
    let names = paths.map(NumberedName.init).filter { !$0.runs.isEmpty }
    let forms = Dictionary(grouping: names, by: \.form).values.sorted {
      ($1.count, $0[0].form) < ($0.count, $1[0].form)
    }
    guard let most = forms.first else { return [] }
    let series = ofForms(forms)
    return series.count > 1 ? series : ofColumns(most)
  }

  private static func isCounted(_ names: [NumberedName]) -> Bool {
    ((try? FormColumns(of: names).counter()) ?? nil) != nil
  }

  /// - Parameters:
  ///   - names: of one form; at least one.
  ///   - place: the run of digits that tells the source; nil if the text does.
  init(_ names: [NumberedName], constant place: Int? = nil) {
    paths = names.map(\.path)
    let first = names[0]
    let fields = first.runs.indices.map { run in
      run == place || names.allSatisfy { $0.runs[run] == first.runs[run] } ? nil : "*"
    }
    let suffixes = Set(
      names.map { lastComponent(of: $0.path).dropFirst(PictureNames.parts(of: $0.path).stem.count) })
    glob = first.glob(fields) + (suffixes.count == 1 ? suffixes.first.map(String.init) ?? "" : ".*")
  }
}
