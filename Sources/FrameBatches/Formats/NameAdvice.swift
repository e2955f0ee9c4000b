// The remedy for names without a known capture time. Each remedy is tried on all names of the batch first.

import FileSystem

/// The capture times that a batch's names may tell.
package struct NameAdvice {
  /// The names of pictures that a format would look at.
  private let names: [String]
  private let source: BatchSource
  private let limits: Limits

  /// Number of names from which patterns are guessed.
  private static let examples = 5
  /// Number of files whose modification times are compared.
  private static let timedFiles = 10_000
  /// Names that a date in a rare form may leave out, or a tenth of all.
  private static let strays = 2

  init(for source: BatchSource, limits: Limits) {
    let contents = source.contents
    let top = contents.topNames.filter(PictureNames.isPicture)
    names = top.isEmpty ? contents.names.filter(PictureNames.isPicture) : top
    (self.source, self.limits) = (source, limits)
  }

  /// Options that read all names, or most of them; nil if there are none.
  var remedy: String? {
    guard let reading, 2 * reading.read >= names.count else {
      let rare = rareReadings
      return rare.count == 1 ? remedy(rare[0]) : nil
    }
    if let mixed = reading.sources {
      return mixed.advice(for: [reading.pattern], names, source, with: option(reading.pattern))
    }
    return remedy(reading)
  }

  private func remedy(_ reading: NameReading) -> String {
    var text = "describe the names: \(option(reading.pattern))"
    if reading.read < names.count { text += "; it reads \(reading.read) of \(names.count) names" }
    if reading.instants < reading.read {
      text += "; \(reading.read - reading.instants) names tell a time that another one tells"
    }
    return text
  }

  /// Returns the option for a pattern. The zone is an example unless the names tell it.
  private func option(_ pattern: NamePattern) -> String {
    guard pattern.needsZone, source.options.timeZone == nil else { return pattern.option }
    return isUniversal(pattern)
      ? "\(pattern.option) --time-zone UTC"
      : "\(pattern.option) --time-zone Europe/Berlin, or the zone where they were captured"
  }

  /// An option that reads all names; nil if there is none.
  var patternForAll: String? { timeForAll.map { "--name-time \($0.shellQuoted)" } }

  /// A pattern that reads a time of its own in each name; nil if there is none.
  var timeForAll: String? {
    if let reading, reading.isExact(of: names.count) { return reading.pattern.description }
    let rare = rareReadings
    return rare.count == 1 && rare[0].read == names.count ? rare[0].pattern.description : nil
  }

  /// Options for a date that can be read in several ways, which is not guessed; nil for other names.
  var remedyInTwoWays: String? {
    let readings = rareReadings
    guard readings.count > 1 else { return nil }
    let zone =
      source.options.timeZone == nil ? ", with --time-zone Europe/Berlin, or the zone where they were captured" : ""
    return "if the numbers are a date, say in which order: "
      + readings.map(\.pattern.option).joined(separator: ", or ") + zone
  }

  /// The option for numbered pictures.
  var rate: String {
    source.options.assumedStartMs != nil
      ? "give --fps R, for example --fps 2" : "give --start T --fps R, for example --start 2026-01-08T08:05:12Z --fps 1"
  }

  /// The option for numbered pictures, if their names have a counter, or patterns that choose one; else nil.
  var numbering: String? {
    do throws(CounterFault) {
      let counter = try NameCounter(of: names)
      guard !names.isEmpty, 2 * counter.places.count > names.count else { return nil }
      let left = names.count - counter.places.count
      return "for numbered pictures \(rate)"
        + (left > 0 ? ", which numbers \(names.count - left) of \(names.count)" : "")
    } catch {
      if (try? Thumbnails(of: error.series, in: source.contents)) != nil { return "for numbered pictures \(rate)" }
      guard error.series.isEmpty else { return "for numbered pictures \(rate), and \(error.adviceOnSeries(source))" }
      guard !error.patterns.isEmpty else { return nil }
      return "for numbered pictures \(rate), and say which number counts: "
        + error.patterns.map { "--name-time \($0.shellQuoted)" }.joined(separator: ", or ")
    }
  }

  /// Returns the pattern that reads the most paths, and whether they tell local times; nil if there is none.
  package static func pattern(for paths: [String], limits: Limits) -> (pattern: NamePattern, needsZone: Bool)? {
    guard let nothing = try? ListedContents([], limits: limits) else { return nil }
    let advice = NameAdvice(for: BatchSource(name: "", contents: nothing), limits: limits)
    return advice.reading(of: paths).map { ($0.pattern, $0.pattern.needsZone) }
  }

  static let renaming = "rename each frame <unix ms>.jpg, or list the frames and their times in a batch.json"

  /// Whether most names have a date.
  var haveDates: Bool {
    let dated = NameShapes(of: names).count { path in
      lastComponent(of: path).split { !$0.isASCII || !$0.isNumber }.contains {
        $0.utf8.count == 4 && ("2001"..."2099").contains($0) || [8, 14].contains($0.utf8.count) && $0.hasPrefix("20")
      }
    }
    return 2 * dated > names.count
  }

  /// Whether `--times mtime` reads the batch, and most files have a time of their own.
  var hasModificationTimes: Bool {
    let times = names.prefix(Self.timedFiles).map { (try? source.contents.modifiedMs($0)) ?? nil }
    return !times.isEmpty && times.allSatisfy { $0 != nil } && 2 * Set(times).count > times.count
  }

  /// Whether a pattern has the name of universal time behind its fields.
  private func isUniversal(_ pattern: NamePattern) -> Bool {
    ["UTC", "GMT"].contains { pattern.description.contains($0) }
  }

  /// Whether a name says AM or PM behind a digit, or in East Asian letters.
  static func isHalfDay(_ path: String) -> Bool {
    let stem = PictureNames.parts(of: path).stem
    return stem.utf8.allSatisfy { $0 < 0x80 } ? isHalfDay(ofASCII: stem) : isHalfDay(ofAny: stem.lowercased())
  }

  /// The same as ``isHalfDay(ofAny:)`` for the names that most have, in a tenth of the time.
  static func isHalfDay(ofASCII stem: Substring) -> Bool {
    func isBlank(_ byte: UInt8) -> Bool { byte == 32 || (9...13).contains(byte) }
    guard stem.utf8.contains(where: { $0 | 0x20 == UInt8(ascii: "m") }) else { return false }
    let letters = stem.utf8.filter { $0 != UInt8(ascii: ".") }
    return letters.indices.contains { index in
      guard letters[index].isDigit else { return false }
      let rest = letters[(index + 1)...].drop { isBlank($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
      guard let first = rest.first, [UInt8(ascii: "a"), UInt8(ascii: "p")].contains(first | 0x20) else { return false }
      let behind = rest.dropFirst().drop(while: isBlank)
      guard let second = behind.first, second | 0x20 == UInt8(ascii: "m") else { return false }
      return behind.dropFirst().first.map { !$0.isDigit && !(97...122).contains($0 | 0x20) } ?? true
    }
  }

  static func isHalfDay(ofAny stem: String) -> Bool {
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

  // MARK: - Patterns

  private var reading: NameReading? { reading(of: names) }

  /// Returns the best reading of names: one of all names, each with a time of its own, else one that reads the most.
  private func reading(of names: [String]) -> NameReading? {
    let shapes = NameShapes(of: names)
    let sorted = names.sorted()
    let step = max(1, (sorted.count - 1) / max(1, Self.examples - 1))
    let examples =
      shapes.examples.prefix(Self.examples).map(\.path) + stride(from: 0, to: sorted.count, by: step).map { sorted[$0] }
    let guesses = examples.compactMap { PatternGuess(of: $0, limits: limits) }
    var tried: Set<String> = []
    var best: NameReading?
    for pattern in guesses.flatMap(\.patterns) where tried.insert(pattern.description).inserted {
      // A pattern of few shapes need not be tried on all names.
      let most = shapes.count { reads(pattern, $0) }
      guard shapes.isCut || most > 0 && most >= best?.plausible ?? 0 else { continue }
      let reading = NameReading(of: names, by: pattern, limits: limits)
      if let found = best, !(reading.isBetter(than: found)) { continue }
      best = reading
      if reading.isExact(of: names.count) { break }
    }
    guard let best, best.plausible > 0 else { return nil }
    return best
  }

  /// The readings by patterns of rare forms, each of a time of its own in all names but a few strays.
  private var rareReadings: [NameReading] {
    var limits = limits
    limits.instants = limits.plausible
    let shapes = NameShapes(of: names)
    let least = max(names.count / 2 + 1, names.count - max(Self.strays, names.count / 10))
    var tried: Set<String> = []
    return shapes.examples.prefix(Self.examples).flatMap { PatternGuess.rare(of: $0.path) }.compactMap { guess in
      guard let pattern = guess.strictest, tried.insert(pattern.description).inserted,
        shapes.isCut || shapes.count(where: { reads(pattern, $0) }) >= least
      else { return nil }
      let reading = NameReading(of: names, by: pattern, limits: limits)
      let isRead = reading.plausible >= least && reading.isExact(of: reading.plausible)
      return isRead && (!guess.mayCount || hasHours(pattern)) ? reading : nil
    }
  }

  /// Whether four digits behind a date are hours and minutes, and no counter: a counter of few pictures is in one hour.
  private func hasHours(_ pattern: NamePattern) -> Bool {
    let hours = names.compactMap { name in
      pattern.match(PictureNames.stem(of: name)).flatMap { NamedTime($0, zone: ZoneRules(offset: "UTC")) }?.instants
        .first?.flooredDivision(by: 3_600_000)
    }
    return Set(hours).count > 1 && hours.contains { $0 % 24 != 0 }
  }

  private func reads(_ pattern: NamePattern, _ path: String) -> Bool {
    !(pattern.hasHours && Self.isHalfDay(path)) && pattern.match(PictureNames.stem(of: path)) != nil
  }
}

extension CounterFault {
  fileprivate func adviceOnSeries(_ source: BatchSource) -> String {
    "give the pictures of one source, and not the folder: "
      + series.map { "\(source.folderWord)/\($0.glob)" }.joined(separator: ", or ")
  }

  /// Returns the ways out for a batch.
  func advice(for pictures: [String], _ source: BatchSource, _ limits: Limits) -> String {
    let advice = NameAdvice(for: source, limits: limits)
    let order = patterns + (advice.timeForAll.map { [$0] } ?? [])
    if !series.isEmpty {
      let times = order.map { "say what orders all: --name-time \($0.shellQuoted); or " }.joined()
      return times + adviceOnSeries(source)
    }
    guard order.isEmpty else {
      return "say what orders them: " + order.map { "--name-time \($0.shellQuoted)" }.joined(separator: ", or ")
    }
    return advice.hasModificationTimes
      ? "if the files have the times of their captures, give --times mtime, and leave out --start and --fps; else \(NameAdvice.renaming)"
      : NameAdvice.renaming
  }
}
