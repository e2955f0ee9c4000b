import FileSystem

/// The counter of a camera that goes on at 0001 after 9999.
struct RolledCounter {
  /// The first number after the largest gap, which comes before all lower ones.
  private let first: Int64
  /// The number of numbers that the counter has.
  private let period: Int64
  /// Says that the order is not that of the numbers.
  let warning: String

  /// Numbers that may be missing where the counter rolled over: deleted pictures.
  private static let mostMissing: Int64 = 100

  /// - Parameter paths: of numbered files.
  /// - Returns: nil unless all numbers have as many digits, reach from the first to the last that a counter has, and leave out more than
  ///   half of them.
  init?(of paths: [String]) {
    let digits = paths.compactMap { path in NumberedFormat.digits(in: path).map { (path: path, text: $0) } }
    guard let width = digits.first?.text.utf8.count, (3...9).contains(width),
      digits.allSatisfy({ $0.text.utf8.count == width })
    else { return nil }
    let numbered = digits.compactMap { file in Int64(file.text).map { (number: $0, path: file.path) } }
    let sorted = numbered.sorted { $0.number < $1.number }
    guard let lowest = sorted.first, let highest = sorted.last else { return nil }
    // Many cameras have no picture 0.
    let last = String(repeating: "9", count: width)
    guard let end = Int64(last) else { return nil }
    period = lowest.number == 0 ? end + 1 : end
    let gaps = zip(sorted, sorted.dropFirst())
    guard let (before, behind) = gaps.max(by: { $0.1.number - $0.0.number < $1.1.number - $1.0.number }),
      behind.number - before.number > period / 2, lowest.number + period - highest.number <= Self.mostMissing
    else { return nil }
    first = behind.number
    warning =
      "the numbers of the pictures go on at their beginning: \(lastComponent(of: lowest.path)) comes after "
      + lastComponent(of: highest.path)
  }

  /// Returns a number of a counter that never rolls over.
  func count(_ number: Int64) -> Int64 { number < first ? number + period : number }
}
