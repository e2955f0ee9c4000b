/// A segment that was written does not read back as it was meant.
struct SegmentMismatch: Error, CustomStringConvertible {
  let description: String

  init(_ what: String) { description = "the written segment does not read back as it was meant: \(what)" }
}
