/// A step of a trace, by which others continue it: a `traceparent` of W3C Trace Context, version 00.
package struct TraceParent: Sendable, Equatable, CustomStringConvertible {
  /// The name of the key and of the HTTP header.
  package static let key = "traceparent"
  /// The number of bytes of each value.
  package static let length = 55

  /// The value as it was written.
  package let description: String

  /// Creates a value; nil for a text that is not `00-<trace id>-<parent id>-<flags>` in lower-case hexadecimal digits.
  package init?(_ text: String) {
    guard text.utf8.count == Self.length else { return nil }
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.map(\.utf8.count) == [2, 32, 16, 2], parts.joined().isHexadecimal, parts[0] == "00",
      parts[1...2].allSatisfy({ $0.contains { $0 != "0" } })
    else { return nil }
    description = text
  }
}
