// Finds pictures of several cameras or screens in one folder. Their names differ in a text, and they alternate in time. Names that
// differ in a text for some time, such as that of the program on screen, are of one source.

import FileSystem

/// The sources of pictures that alternate.
struct InterleavedSources {
  /// The texts of the sources; empty for one source.
  let texts: [String]
  let cause: String

  /// Pictures that make a source, and the largest number of sources.
  private static let (least, most) = (3, 16)

  /// - Parameter pictures: each with its time in unix milliseconds, and the text in its name.
  init(_ pictures: [(timeMs: Int64, text: String)]) {
    let counts = Dictionary(grouping: pictures, by: \.text).mapValues(\.count)
    let others = pictures.count - (counts.values.max() ?? 0)
    guard (2...Self.most).contains(counts.count), counts.values.allSatisfy({ $0 >= Self.least }) else {
      (texts, cause) = ([], "")
      return
    }
    let sorted = pictures.sorted { ($0.timeMs, $0.text) < ($1.timeMs, $1.text) }
    let changes = zip(sorted, sorted.dropFirst()).count { $0.text != $1.text }
    // Each picture of a source between two of another one makes two changes.
    guard 2 * changes >= 3 * others else {
      (texts, cause) = ([], "")
      return
    }
    texts = counts.keys.sorted()
    let shown = texts.map { "\(counts[$0] ?? 0) with '\($0.shortened(to: 40))'" }
    cause = "pictures of \(texts.count) sources alternate: \(shown.joined(separator: ", ")) in their names"
  }

  /// Returns the ways out, tried on the names: a session for each source, or the pictures of one.
  ///
  /// - Parameter patterns: those that read the names.
  func advice(for patterns: [NamePattern], _ names: [String], _ source: BatchSource) -> String {
    let pictures = names.filter(PictureNames.canBePicture)
    var groups: [String: [NumberedName]] = [:]
    for path in pictures {
      let stem = source.name + "/" + PictureNames.stem(of: path)
      guard let match = patterns.lazy.compactMap({ $0.match(stem) }).first else { continue }
      groups[match.text ?? "", default: []].append(NumberedName(path))
    }
    let globs = texts.compactMap { groups[$0].map { NameSeries($0).glob } }
    let one =
      "for a film of one, give its pictures, and not the folder: "
      + globs.map { "\(source.folderWord)/\($0)" }.joined(separator: ", or ")
    return (session(for: patterns, pictures, source).map { "\($0.option) makes a session of each; " } ?? "") + one
  }

  /// Returns the pattern with a session for each source; nil if none reads all names so.
  private func session(for patterns: [NamePattern], _ pictures: [String], _ source: BatchSource) -> NamePattern? {
    patterns.flatMap { $0.grouped(by: texts) }.first { grouped in
      let read = pictures.map { grouped.match(source.name + "/" + PictureNames.stem(of: $0)) }
      let groups = Set(read.compactMap { $0?.group })
      return read.allSatisfy { $0 != nil } && groups.count == texts.count && groups.allSatisfy { SessionID($0) != nil }
    }
  }
}

extension NamePattern {
  /// Returns the patterns with the session in place of the only text, and without optional parts: first without the characters
  /// around all texts.
  fileprivate func grouped(by texts: [String]) -> [NamePattern] {
    guard let text = description.firstRange(of: "%*"), !description.contains("%g"),
      !description[text.upperBound...].contains("%*")
    else { return [] }
    let isMark: (Character?) -> Bool = { $0.map("-_. @+~".contains) ?? false }
    let first =
      texts[0].first.flatMap { mark in texts.allSatisfy { $0.first == mark } && isMark(mark) ? "\(mark)" : nil } ?? ""
    let last =
      texts[0].last.flatMap { mark in texts.allSatisfy { $0.last == mark } && isMark(mark) ? "\(mark)" : nil } ?? ""
    return ["\(first)%g\(last)", "%g"].compactMap { field in
      var (pattern, isField) = ("", false)
      for letter in description[..<text.lowerBound] + field + description[text.upperBound...] {
        if isField || !"[]".contains(letter) { pattern.append(letter) }
        isField = !isField && letter == "%"
      }
      return NamePattern(pattern)
    }
  }

  /// The option for the pattern, as a shell reads it.
  var option: String { "--name-time \(description.shellQuoted)" }
}
