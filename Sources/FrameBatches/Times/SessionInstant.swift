/// An instant that a person names: absolute, or counted from a session's start.
package enum SessionInstant: Equatable, Sendable {
  /// Unix milliseconds.
  case unixMs(Int64)
  /// Milliseconds from the session's start.
  case afterStartMs(Int64)

  /// The forms that ``init(_:)`` reads, for a message.
  package static let rule = "unix milliseconds, ISO 8601 with a zone, or +12.5s from the session's start"

  /// Returns why a text is no instant, and what to write instead. An instant that it names is one.
  package static func fault(of text: String) -> String {
    let joined = text.replacing(" ", with: "T", maxReplacements: 1)
    if SessionInstant(joined + "Z") != nil, SessionInstant(joined + "+01:00") != nil {
      return "a time without its zone; add it: \(joined)Z for UTC, or \(joined)+01:00"
    }
    if let ms = milliseconds(ofSeconds: text[...]), (100_000_000_000...maximumMs).contains(ms) {
      return "looks like unix seconds; write milliseconds: \(ms)"
    }
    if let meant = [joined, "+" + text, "+" + text + "s", text + "s"].first(where: { SessionInstant($0) != nil }) {
      return "not an instant; write \(meant)"
    }
    return "not an instant; it is \(rule)"
  }

  /// - Parameter text: unix milliseconds, ISO 8601 with a zone, or `+<seconds>s` with up to three decimals.
  /// - Returns: nil for any other text.
  package init?(_ text: String) {
    if text.hasPrefix("+") {
      guard text.hasSuffix("s"), let ms = Self.milliseconds(ofSeconds: text.dropFirst().dropLast()) else { return nil }
      self = .afterStartMs(ms)
    } else if let ms = Int64(text) ?? ISOTime.instant(in: text), (0...Self.maximumMs).contains(ms) {
      self = .unixMs(ms)
    } else {
      return nil
    }
  }

  /// Returns the instant in unix milliseconds.
  package func unixMs(inSessionFrom startMs: Int64) -> Int64 {
    switch self {
    case .unixMs(let ms): ms
    case .afterStartMs(let ms): startMs + ms
    }
  }

  /// Returns the instant after a time.
  package func after(ms: Int64) -> SessionInstant {
    switch self {
    case .unixMs(let start): .unixMs(start + ms)
    case .afterStartMs(let start): .afterStartMs(start + ms)
    }
  }

  /// Returns a length of time in milliseconds: seconds with up to three decimals, as `12.5s` or `12.5`.
  ///
  /// - Returns: nil for any other text, and for no time at all.
  package static func length(_ text: String) -> Int64? {
    let ms = milliseconds(
      ofSeconds: text[...].dropFirst(text.hasPrefix("+") ? 1 : 0).dropLast(text.hasSuffix("s") ? 1 : 0))
    return ms.flatMap { $0 > 0 ? $0 : nil }
  }

  /// Later than any capture.
  private static let maximumMs: Int64 = 1 << 42

  private static func milliseconds(ofSeconds text: Substring) -> Int64? {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
      let whole = parts.first.flatMap({ Int64($0) }), whole <= maximumMs / 1_000
    else { return nil }
    guard parts.count == 2 else { return whole * 1_000 }
    guard parts[1].utf8.count <= 3 else { return nil }
    return Int64(parts[1] + String(repeating: "0", count: 3 - parts[1].utf8.count)).map { whole * 1_000 + $0 }
  }
}
