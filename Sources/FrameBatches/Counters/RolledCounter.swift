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

  /// - Parameters:
  ///   - numbers: of the files.
  ///   - digits: of each number.
  ///   - names: of the files.
  /// - Returns: nil unless the numbers reach from the first to the last that a counter has, and leave out more than half of them.
  init?(of numbers: [Int64], digits: Int, _ names: [String]) {
    guard (3...9).contains(digits) else { return nil }
    let order = numbers.indices.sorted { numbers[$0] < numbers[$1] }
    guard let lowest = order.first, let highest = order.last else { return nil }
    let end = (0..<digits).reduce(1 as Int64) { product, _ in product * 10 }
    // Many cameras have no picture 0.
    period = numbers[lowest] == 0 ? end : end - 1
    guard numbers[lowest] + period - numbers[highest] <= Self.mostMissing,
      let (before, behind) = zip(order, order.dropFirst()).max(by: {
        numbers[$0.1] - numbers[$0.0] < numbers[$1.1] - numbers[$1.0]
      }), numbers[behind] - numbers[before] > period / 2
    else { return nil }
    first = numbers[behind]
    warning =
      "the numbers of the pictures go on at their beginning: \(names[lowest]) comes after \(names[highest])"
  }

  /// Returns a number of a counter that never rolls over.
  func count(_ number: Int64) -> Int64 { number < first ? number + period : number }
}
