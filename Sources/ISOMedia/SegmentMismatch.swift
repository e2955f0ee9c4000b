/// A segment that was written does not read back as it was meant.
package struct SegmentMismatch: Error, CustomStringConvertible {
  package let description: String

  package init(_ what: String) { description = "the written segment does not read back as it was meant: \(what)" }
}
