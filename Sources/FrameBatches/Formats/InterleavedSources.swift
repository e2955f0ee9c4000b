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
    let sorted = pictures.sorted { ($0.timeMs, $0.text) < ($1.timeMs, $1.text) }.map(\.text)
    guard Self.alternate(sorted, others) || Self.alternateInPairs(sorted, counts) else {
      (texts, cause) = ([], "")
      return
    }
    texts = counts.keys.sorted()
    let shown = texts.map { "\(counts[$0] ?? 0) with '\($0.shortened(to: 40))'" }
    cause = "pictures of \(texts.count) sources alternate: \(shown.joined(separator: ", ")) in their names"
  }

  /// - Parameter others: the number of pictures that are not of the source with the most.
  private static func alternate(_ texts: [String], _ others: Int) -> Bool {
    // Each picture of a source between two of another one makes two changes.
    2 * zip(texts, texts.dropFirst()).count { $0 != $1 } >= 3 * others
  }

  /// Whether each two of three sources or more alternate: pictures of a third one lie between them.
  private static func alternateInPairs(_ texts: [String], _ counts: [String: Int]) -> Bool {
    let sources = counts.sorted { $0.key < $1.key }
    guard sources.count > 2 else { return false }
    return sources.indices.allSatisfy { one in
      sources[..<one].allSatisfy { other in
        let pair = texts.filter { $0 == sources[one].key || $0 == other.key }
        return alternate(pair, min(sources[one].value, other.value))
      }
    }
  }

  /// Returns the ways out, tried on the names: a session for each source, or the pictures of one.
  ///
  /// - Parameters:
  ///   - patterns: those that read the names.
  ///   - option: the option that reads the names of one source, if they need it.
  func advice(
    for patterns: [NamePattern], _ names: [String], _ source: BatchSource, with option: String? = nil
  ) -> String {
    let pictures = names.filter(PictureNames.canBePicture)
    var groups: [String: [NumberedName]] = [:]
    for path in pictures {
      let stem = source.name + "/" + PictureNames.stem(of: path)
      guard let match = patterns.lazy.compactMap({ $0.match(stem) }).first else { continue }
      groups[match.text ?? "", default: []].append(NumberedName(path))
    }
    let globs = texts.compactMap { groups[$0].map { NameSeries($0).glob } }
    let one =
      "for a film of one, give its pictures, and not the folder"
      + (option.map { ", with \($0)" } ?? "") + ": "
      + globs.map { "\(source.folderWord)/\($0)" }.joined(separator: ", or ")
    // A film has one session.
    let command = source.options.assumedStartMs == nil ? "" : "encode with "
    let each = session(for: patterns, pictures, source).map { pattern in
      let zone = pattern.needsZone && source.options.timeZone == nil ? " and --time-zone" : ""
      return "\(command)\(pattern.option)\(zone) makes a session of each; "
    }
    return (each ?? "") + one
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

// MARK: - Names without times

extension InterleavedSources {
  /// Returns a warning if pictures whose names tell no time are of several sources that alternate.
  static func warning(on frames: [Frame], of series: [NameSeries], _ source: BatchSource) -> String? {
    guard series.count > 1 else { return nil }
    let globs = Dictionary(
      series.flatMap { one in one.paths.map { ($0, one.glob) } }, uniquingKeysWith: { first, _ in first })
    let pictures = frames.compactMap { frame in globs[frame.paths[0]].map { (timeMs: frame.timeMs, text: $0) } }
    let mixed = InterleavedSources(pictures)
    guard !mixed.texts.isEmpty else { return nil }
    let words = mixed.texts.map { "\(source.folderWord)/\($0)" }
    return
      "pictures of \(mixed.texts.count) sources alternate, and become one film; for a film of one, give its pictures, and not "
      + "the folder: " + words.joined(separator: ", or ")
  }
}

// MARK: - Folders

extension InterleavedSources {
  /// Pictures of one instant whose files are compared.
  private static let pairs = 8

  /// Returns the cause and the way out if two folders at least have pictures of a source each: they alternate, and they are no copies of
  /// each other. A small copy, and the same file twice, are of one source.
  ///
  /// - Parameter pictures: with their folders.
  static func folders(
    of pictures: [(path: String, timeMs: Int64)], _ source: BatchSource, _ limits: Limits
  ) throws -> (cause: String, advice: String)? {
    guard pictures.first?.path.contains("/") == true else { return nil }
    let placed = pictures.compactMap { picture in
      picture.path.firstIndex(of: "/").map { (timeMs: picture.timeMs, text: String(picture.path[..<$0])) }
    }
    guard placed.count == pictures.count, placed.contains(where: { $0.text != placed[0].text }) else { return nil }
    let mixed = InterleavedSources(placed)
    guard !mixed.texts.isEmpty, try !areCopies(pictures, source.contents, limits) else { return nil }
    let counts = Dictionary(grouping: placed, by: \.text).mapValues(\.count)
    let shown = mixed.texts.map { "\(counts[$0] ?? 0) in '\($0.shortened(to: 40))'" }
    return (
      "pictures of \(mixed.texts.count) folders alternate: \(shown.joined(separator: ", "))",
      "give one of the folders, and not the folder around them: "
        + mixed.texts.map { "\(source.folderWord)/\($0.shellWord)" }.joined(separator: ", or ")
    )
  }

  /// Whether pictures of one instant are of one source: their sizes differ, or they are the same file.
  private static func areCopies(
    _ pictures: [(path: String, timeMs: Int64)], _ contents: any BatchContents, _ limits: Limits
  ) throws -> Bool {
    let same = Dictionary(grouping: pictures, by: \.timeMs).values.filter { $0.count > 1 }
      .sorted { $0[0].timeMs < $1[0].timeMs }
    guard 2 * same.count > Set(pictures.map(\.timeMs)).count else { return false }
    return try same.prefix(pairs).allSatisfy { group in
      let paths = group.prefix(2).map(\.path)
      let sizes = try paths.map { try contents.pictureSize(of: $0) }
      if sizes[0] != sizes[1] { return true }
      guard case .bytes(let one)? = try contents.contents(of: paths[0], limit: limits.fileBytes),
        case .bytes(let other)? = try contents.contents(of: paths[1], limit: limits.fileBytes)
      else { return true }
      return one == other
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
