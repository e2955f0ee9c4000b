// The remedy for names without a known capture time. Each remedy is tried on the batch's own names first.

import FileSystem

/// The capture times that a batch's names may tell.
package struct NameAdvice {
  /// The names of pictures that a format would look at.
  private let names: [String]
  private let contents: any BatchContents
  private let limits: Limits

  /// Number of names that choose between patterns. The chosen one is tried on all names.
  private static let sampleSize = 256
  /// Number of names from which patterns are guessed.
  private static let examples = 5
  /// Suffixes of pictures, also of those that have to be converted.
  private static let pictureSuffixes: Set<String> = [
    "avif", "bmp", "gif", "heic", "heif", "jp2", "jpeg", "jpg", "jxl", "png", "ppm", "tif", "tiff", "webp",
  ]

  init(for contents: any BatchContents, limits: Limits) {
    let top = contents.topNames.filter(Self.isPicture)
    names = top.isEmpty ? contents.names.filter(Self.isPicture) : top
    (self.contents, self.limits) = (contents, limits)
  }

  /// Whether a file is a picture by its suffix.
  package static func isPicture(_ path: String) -> Bool {
    pictureSuffixes.contains(NamedTimesFormat.parts(of: path).suffix)
  }

  /// Options that read all names, or most of them; nil if there are none.
  var remedy: String? {
    guard let (pattern, read) = pattern(for: names), 2 * read >= names.count else { return nil }
    return "describe the names to encode or enqueue, for example --name-time \(pattern.description.shellQuoted)"
      + (pattern.needsZone ? " --time-zone \(isUniversal(pattern) ? "UTC" : "Europe/Berlin")" : "")
      + (read < names.count ? "; it reads \(read) of \(names.count) names" : "")
  }

  /// Returns an option that reads all names; nil if there is none.
  var patternForAll: String? {
    guard let (pattern, read) = pattern(for: names), read == names.count else { return nil }
    return "--name-time \(pattern.description.shellQuoted)"
  }

  /// Returns the pattern that reads the most paths, and whether they tell local times; nil if there is none.
  package static func pattern(for paths: [String], limits: Limits) -> (pattern: NamePattern, needsZone: Bool)? {
    guard let nothing = try? ListedContents([], limits: limits) else { return nil }
    return NameAdvice(for: nothing, limits: limits).pattern(for: paths).map { ($0.0, $0.0.needsZone) }
  }

  static let renaming = "rename each frame <unix ms>.jpg, or list the frames and their times in a batch.json"

  /// Whether a name has a date.
  var hasDates: Bool {
    names.prefix(Self.sampleSize).contains { name in
      lastComponent(of: name).split { !$0.isASCII || !$0.isNumber }.contains {
        $0.utf8.count == 4 && ("2001"..."2099").contains($0) || [8, 14].contains($0.utf8.count) && $0.hasPrefix("20")
      }
    }
  }

  /// Whether each name has a number of its own.
  var areNumbered: Bool {
    let numbers = names.compactMap(NumberedFormat.number)
    return !numbers.isEmpty && Set(numbers).count == names.count
  }

  /// Whether `--times mtime` reads the batch.
  var hasModificationTimes: Bool {
    contents.topNames.first.map { (try? contents.modifiedMs($0)) ?? nil } ?? nil != nil
  }

  /// Whether a pattern has the name of universal time behind its fields.
  private func isUniversal(_ pattern: NamePattern) -> Bool {
    ["UTC", "GMT"].contains { pattern.description.contains($0) }
  }

  /// Whether a name says AM or PM behind a digit, or in East Asian letters.
  static func isHalfDay(_ path: String) -> Bool {
    let stem = NamedTimesFormat.parts(of: path).stem.lowercased()
    if ["午前", "午後", "上午", "下午", "오전", "오후"].contains(where: stem.contains) { return true }
    let letters = Array(stem.filter { $0 != "." })
    return letters.indices.contains { index in
      guard letters[index].isNumber else { return false }
      let rest = letters[(index + 1)...].drop { $0.isWhitespace || "_-".contains($0) }
      let behind = rest.dropFirst().drop(while: \.isWhitespace)
      guard let first = rest.first, "ap".contains(first), behind.first == "m" else { return false }
      return behind.dropFirst().first.map { !$0.isLetter && !$0.isNumber } ?? true
    }
  }

  /// Returns the pattern that reads the most names, and how many it reads.
  private func pattern(for names: [String]) -> (NamePattern, read: Int)? {
    let sorted = names.sorted()
    func spread(_ count: Int) -> [String] {
      guard sorted.count > count else { return sorted }
      return (0..<count).map { sorted[$0 * (sorted.count - 1) / (count - 1)] }
    }
    let sample = spread(Self.sampleSize)
    var best: (pattern: NamePattern, read: Int)?
    for guess in spread(Self.examples).compactMap({ PatternGuess(of: $0, limits: limits) }) {
      for pattern in guess.patterns {
        let read = sample.count { reads(pattern, $0) }
        if read > best?.read ?? 0 { best = (pattern, read) }
        if read == sample.count { break }
      }
    }
    guard let best, sample.contains(where: { reads(best.pattern, $0, plausibly: true) }) else { return nil }
    return (best.pattern, names.count { reads(best.pattern, $0) })
  }

  /// Whether a pattern finds a time in a name.
  private func reads(_ pattern: NamePattern, _ path: String, plausibly: Bool = false) -> Bool {
    guard !(pattern.hasHours && Self.isHalfDay(path)), let match = pattern.match(NamedTimesFormat.stem(of: path)),
      let time = NamedTime(match, zone: ZoneRules(offset: "UTC"))
    else { return false }
    return !plausibly || time.instants.contains(where: limits.instants.contains)
  }
}
