/// The rule by which producers share a limit. One of them has at most three quarters of it. The last quarter is for those that hold little.
enum FairShare {
  /// Whether a producer may take one more.
  ///
  /// - Parameters:
  ///   - producer: nil if there are no tokens. Then the limit is not shared; neither is it for the only producer.
  ///   - own: what the producer holds.
  ///   - all: what all hold.
  static func allows(_ producer: Producer?, own: Int, all: Int, limit: Int) -> Bool {
    guard all < limit else { return false }
    guard let producer, !producer.isAlone else { return true }
    return 4 * all < 3 * limit || 4 * own < limit - all
  }
}

/// The parts of a limit that producers hold.
struct HeldShares {
  private(set) var all = 0
  private var byProducer: [String: Int] = [:]

  subscript(producer: Producer?) -> Int { byProducer[producer?.name ?? ""] ?? 0 }

  mutating func add(_ amount: Int, of producer: Producer?) {
    all += amount
    let held = self[producer] + amount
    byProducer[producer?.name ?? ""] = held == 0 ? nil : held
  }
}
