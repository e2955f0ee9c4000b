import JSON

/// Numbers of durations, each to two significant digits. So they can be added and taken away, and stay few: 90 for each power of ten.
package struct DigitCounts: Sendable, Equatable {
  package enum Rounding: Sendable {
    case up, nearest
  }

  private var counts: [Int64: Int] = [:]

  package init() {}

  /// Durations that can be counted, in milliseconds: far above those of a session.
  private static let durations: ClosedRange<Int64> = 1...1 << 42

  package var isEmpty: Bool { counts.isEmpty }

  /// The number of durations.
  package var count: Int { counts.values.reduce(0, +) }

  /// The longest one in milliseconds; nil without any.
  package var longestMs: Int64? { counts.keys.max() }

  /// The one that was counted most often, in milliseconds: the shortest of several.
  package var commonestMs: Int64? { counts.min { ($1.value, $0.key) < ($0.value, $1.key) }?.key }

  /// Returns a percentile by nearest rank, in milliseconds.
  ///
  /// - Parameter percent: from 1 to 100.
  package func percentileMs(_ percent: Int) -> Int64? {
    let rank = max(1, (count * percent + 99) / 100)
    var before = 0
    for (ms, count) in counts.sorted(by: { $0.key < $1.key }) {
      before += count
      if before >= rank { return ms }
    }
    return nil
  }

  /// Counts a duration in milliseconds.
  package mutating func add(_ ms: Int64, _ rounding: Rounding, count: Int = 1) {
    guard count > 0 else { return }
    counts[Self.rounded(min(max(ms, 1), Self.durations.upperBound), rounding), default: 0] += count
  }

  package mutating func add(_ other: DigitCounts) { counts.merge(other.counts, uniquingKeysWith: +) }

  /// Takes away durations that were added.
  package mutating func remove(_ other: DigitCounts) {
    for (ms, count) in other.counts {
      let left = (counts[ms] ?? 0) - count
      counts[ms] = left > 0 ? left : nil
    }
  }

  /// Returns a number of two significant digits.
  private static func rounded(_ ms: Int64, _ rounding: Rounding) -> Int64 {
    var unit: Int64 = 1
    while ms / unit >= 100 { unit *= 10 }
    let more = rounding == .up ? unit - 1 : unit / 2
    return (ms + more) / unit * unit
  }

  /// `[[400,6],[1200,1]]`: the durations in their order, and the number of each.
  package var json: JSONValue {
    .array(counts.sorted { $0.key < $1.key }.map { .array([.number($0.key), .number($0.value)]) })
  }

  /// - Parameter json: nil for none.
  package init(_ json: JSONValue?) throws(JSONError) {
    guard let json else { return }
    // A bound far above the number of durations with two digits.
    guard let list = json.array, list.count <= 2_000 else { throw JSONError("not a list of durations") }
    for item in list {
      guard let pair = item.array, pair.count == 2, let ms = pair[0].integer, Self.durations.contains(ms),
        counts[ms] == nil, let count = pair[1].integer, (1...Int64(1) << 32).contains(count)
      else { throw JSONError("not durations and their numbers") }
      counts[ms] = Int(count)
    }
  }
}
