/// A generator with the same numbers in every run: SplitMix64 (Steele, Lea, Flood 2014).
public struct Random: RandomNumberGenerator {
  private var state: UInt64

  public init(seed: Int) { state = UInt64(bitPattern: Int64(seed)) }

  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
    return value ^ value >> 31
  }

  public mutating func int(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &self) }

  /// Returns true with probability 1/`count`.
  public mutating func once(in count: Int64) -> Bool { int(1...count) == 1 }
}
