/// A number in each of some names, which may be their counter.
struct CounterColumn {
  /// The numbers, in the order of the names.
  private(set) var numbers: [Int64]
  /// The number of digits; nil if it differs between names, or the numbers are decimal.
  let width: Int?
  /// Says that the counter went on at its beginning; nil if it did not.
  private(set) var rolled: String?
  /// The pattern that reads the column; nil for one that a pattern cannot choose.
  let pattern: String?
  private let spacing: Spacing

  /// The distances of sorted numbers.
  private struct Spacing {
    /// Whether no number occurs twice.
    let isDistinct: Bool
    /// The greatest number that divides all distances; at least one.
    let step: Int64
    /// The middle and the longest distance, in steps.
    let (median, longest): (Int64, Int64)
    /// The share of numbers between the first and the last that occur.
    let density: Double

    init(_ numbers: [Int64]) {
      let sorted = numbers.sorted()
      let distances = zip(sorted.dropFirst(), sorted).map { $0 - $1 }
      isDistinct = !distances.contains(0)
      let divisor = distances.reduce(0) { Self.divisor($0, $1) }
      // Two numbers tell no step.
      step = distances.count > 1 ? max(1, divisor) : 1
      let steps = distances.map { [step] in $0 / step }.sorted()
      (median, longest) = (steps.isEmpty ? 1 : steps[steps.count / 2], steps.last ?? 1)
      let span = Double((sorted.last ?? 0) - (sorted.first ?? 0)) / Double(step) + 1
      density = Double(numbers.count) / max(1, span)
    }

    /// Returns the greatest common divisor.
    private static func divisor(_ one: Int64, _ other: Int64) -> Int64 {
      var (one, other) = (one, other)
      while other != 0 { (one, other) = (other, one % other) }
      return one
    }
  }

  /// Digits of the largest number.
  static let mostDigits = 18

  /// - Parameters:
  ///   - digits: of each name.
  ///   - names: the file names, for messages.
  /// - Returns: nil for a number that is too large.
  init?(_ digits: [Substring], of names: [String], pattern: String?) {
    var numbers: [Int64] = []
    numbers.reserveCapacity(digits.count)
    for text in digits {
      guard text.utf8.count <= Self.mostDigits, let number = Int64(text) else { return nil }
      numbers.append(number)
    }
    let width = digits.first?.utf8.count
    let isFixed = digits.allSatisfy { $0.utf8.count == width }
    var rolled: String?
    if isFixed, let width, let counter = RolledCounter(of: numbers, digits: width, names) {
      numbers = numbers.map(counter.count)
      rolled = counter.warning
    }
    self.init(numbers, width: isFixed ? width : nil, rolled: rolled, pattern: pattern)
  }

  private init(_ numbers: [Int64], width: Int?, rolled: String?, pattern: String?) {
    (self.numbers, self.width, self.rolled, self.pattern) = (numbers, width, rolled, pattern)
    spacing = Spacing(numbers)
  }

  /// Numbers with a point: the parts before and behind it.
  ///
  /// - Returns: nil for a number that is too large.
  init?(whole: [Substring], decimals: [Substring]) {
    let places = decimals.map(\.utf8.count).max() ?? 0
    var numbers: [Int64] = []
    for (whole, decimals) in zip(whole, decimals) {
      let digits = whole + decimals + String(repeating: "0", count: places - decimals.utf8.count)
      guard digits.utf8.count <= Self.mostDigits, let number = Int64(digits) else { return nil }
      numbers.append(number)
    }
    self.init(numbers, width: nil, rolled: nil, pattern: nil)
  }

  /// Whether it differs in all names.
  var isDistinct: Bool { spacing.isDistinct }
  /// Whether at least half of the numbers between the first and the last occur.
  var isDense: Bool { isDistinct && spacing.density >= 0.5 }
  /// Whether no number is missing.
  var isEven: Bool { isDistinct && spacing.longest == 1 }
  var density: Double { spacing.density }

  /// Whether two columns put the names in one order.
  func isOrdered(as other: CounterColumn) -> Bool {
    let order = numbers.indices.sorted { numbers[$0] < numbers[$1] }
    return zip(order, order.dropFirst()).allSatisfy { other.numbers[$0] < other.numbers[$1] }
  }

  /// The last digits of it, if they go on where its first digits change: a group of a camera, and its counter.
  var withoutGroup: CounterColumn? {
    guard let width, width > 3, rolled == nil, spacing.longest > Int64(numbers.count) else { return nil }
    for digits in (3..<width).reversed() {
      let divisor = (0..<digits).reduce(1 as Int64) { product, _ in product * 10 }
      let end = CounterColumn(numbers.map { $0 % divisor }, width: digits, rolled: nil, pattern: nil)
      if end.isDense, isOrdered(as: end) { return end }
    }
    return nil
  }

  // MARK: - Frames

  /// Steps between pictures from which the numbers are no numbers of frames.
  private static let sparse: Int64 = 10

  /// The place of each name on the counter: 0 for the lowest number, and one more for each step. Where most numbers are missing, each
  /// name has the place behind the one before.
  ///
  /// - Parameter names: the file names, for messages.
  func places(_ names: [String]) -> (places: [Int64], warnings: [String]) {
    guard let lowest = numbers.min() else { return ([], []) }
    let order = numbers.indices.sorted { numbers[$0] < numbers[$1] }
    var warnings = rolled.map { [$0] } ?? []
    if numbers.count > 1, spacing.median > Self.sparse {
      warnings.append(
        "the numbers of the pictures are far apart, \(spacing.median * spacing.step) at the middle distance: each picture is one "
          + "frame, in the order of the numbers"
          + (pattern.map { "; --name-time \($0.shellQuoted) counts each number" } ?? ""))
      var places = [Int64](repeating: 0, count: numbers.count)
      for (place, index) in order.enumerated() { places[index] = Int64(place) }
      return (places, warnings)
    }
    if spacing.step > 1 {
      warnings.append("the numbers of the pictures go up by \(spacing.step): each step is one frame")
    }
    if spacing.longest > Self.sparse, spacing.longest > Self.sparse * spacing.median,
      let (before, behind) = zip(order, order.dropFirst()).max(by: { distance($0) < distance($1) })
    {
      warnings.append(
        "\(names[before]) is held for \(spacing.longest) frames: no picture has a number between it and \(names[behind])"
      )
    }
    return (numbers.map { ($0 - lowest) / spacing.step }, warnings)
  }

  private func distance(_ pair: (Int, Int)) -> Int64 { numbers[pair.1] - numbers[pair.0] }
}
