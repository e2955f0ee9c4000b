/// The lengths that hold where nobody states others, in milliseconds.
package enum DefaultLengths {
  /// The longest time that a picture is held in recordings at an interval.
  package static let maxHoldMs: Int64 = 5_000
  package static let segmentMs: Int64 = 5_000
}
