/// The times that a pattern reads in the names of a batch.
struct NameReading {
  let pattern: NamePattern
  /// The number of names that it reads, and of the times that they tell.
  private(set) var (read, instants) = (0, 0)
  /// The number of names whose times lie within the limits.
  private(set) var plausible = 0
  /// Whether the names differ in digits that the pattern does not read.
  private(set) var losesDigits = false
  /// The sources of pictures that alternate; nil for one source.
  private(set) var sources: InterleavedSources?

  /// Reads names. Numbers behind the second are its fraction unless they count.
  init(of names: [String], by pattern: NamePattern, limits: Limits) {
    var found: [(path: Substring, time: NamedTime, text: String)] = []
    // Strays have times of their own.
    var (times, digits) = ([NamedTime](), [ArraySlice<UInt8>]())
    for name in names where !(pattern.hasHours && NameAdvice.isHalfDay(name)) {
      let stem = PictureNames.stem(of: name)
      guard let match = pattern.match(stem), let time = NamedTime(match, zone: ZoneRules(offset: "UTC")) else {
        continue
      }
      found.append((stem, time, match.text ?? ""))
      guard time.instants.contains(where: limits.instants.contains) else { continue }
      times.append(time)
      if let number = match.digits[.sequence] { digits.append(number) }
    }
    if let better = Self.fraction(of: times, digits, pattern) {
      self.init(of: names, by: better, limits: limits)
      return
    }
    self.init(pattern, found, limits)
  }

  private init(
    _ pattern: NamePattern, _ found: [(path: Substring, time: NamedTime, text: String)], _ limits: Limits
  ) {
    self.pattern = pattern
    read = found.count
    var known: Set<[Int64]> = []
    var keys: Set<Substring> = []
    for file in found where keys.insert(file.path).inserted {
      known.insert([file.time.instants.first ?? 0, file.time.sequence ?? -1])
    }
    // Companions of one name, with other suffixes, are one picture.
    instants = known.count + found.count - keys.count
    plausible = found.count { $0.time.instants.contains(where: limits.instants.contains) }
    losesDigits = Set(found.map { $0.text.filter { ("0"..."9").contains($0) } }).count > 1
    let mixed = InterleavedSources(found.map { ($0.time.instants.first ?? 0, $0.text) })
    sources = mixed.texts.isEmpty ? nil : mixed
  }

  func isExact(of count: Int) -> Bool {
    read == count && instants == count && plausible > 0 && sources == nil && !losesDigits
  }

  func isBetter(than other: NameReading) -> Bool { rank > other.rank }

  private var rank: (Int, Int, Int, Int, Int) {
    (plausible, sources == nil ? 1 : 0, losesDigits ? 0 : 1, instants, read)
  }

  /// Returns the pattern that reads numbers as fractions of the second; nil if they count the pictures of a second, or of the batch.
  ///
  /// Fractions have 3, 6 or 9 digits. Counters begin at 0 or 1 in each second, or in the batch, and leave out few numbers.
  private static func fraction(
    of times: [NamedTime], _ digits: [ArraySlice<UInt8>], _ pattern: NamePattern
  ) -> NamePattern? {
    guard let width = digits.first?.count, [3, 6, 9].contains(width), digits.count == times.count,
      digits.allSatisfy({ $0.count == width }), times.allSatisfy(\.isWholeSecond)
    else { return nil }
    let numbers = times.map { $0.sequence ?? 0 }
    func counts(_ numbers: [Int64]) -> Bool {
      let sorted = numbers.sorted()
      guard let first = sorted.first, let last = sorted.last else { return true }
      return first <= 1 && last - first < 2 * Int64(sorted.count)
    }
    let seconds = Dictionary(grouping: times.indices) { times[$0].instants.first ?? 0 }
    let isCounter = counts(numbers) || seconds.values.allSatisfy { counts($0.map { numbers[$0] }) }
    return isCounter ? nil : NamePattern(pattern.description.replacing("%q", with: width == 3 ? "%L" : "%f"))
  }
}
