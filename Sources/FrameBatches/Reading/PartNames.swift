// Batches that became sessions of their own by their names, and whose names look like parts of one session: `s01-0.tar.gz` and
// `s01-1.tar.gz`.

/// The hint on batches that may be parts of one session.
package struct PartNames {
  private struct Series: Hashable, Comparable {
    let session: String
    /// The text between the session and the number.
    let separator: String

    var pattern: String { "{session}\(separator){part}" }

    static func < (one: Series, other: Series) -> Bool {
      (one.session, one.separator) < (other.session, other.separator)
    }
  }

  /// Digits of a part's number at most. Longer numbers are times.
  private static let digits = 6
  private static let separators: [Character] = ["-", "_", "."]

  private var series: [Series: [Int: String]] = [:]

  package init() {}

  /// Adds a batch.
  ///
  /// - Parameters:
  ///   - batch: the name that its producer gave it.
  ///   - session: the session that it belongs to. It counts only if it is the batch's name without an archive's ending.
  package mutating func add(_ batch: String, of session: SessionID) {
    let name = session.description
    guard OpenedBatch.stem(of: batch) == name else { return }
    let number = name.reversed().prefix { $0.isASCII && $0.isNumber }.count
    let rest = name.dropLast(number)
    guard 1...Self.digits ~= number, let separator = rest.last, Self.separators.contains(separator),
      let part = Int(name.suffix(number))
    else { return }
    let found = Series(session: String(rest.dropLast()), separator: String(separator))
    series[found, default: [:]][part] = name
  }

  /// Returns the option that makes one session of the batches; nil if no batches look like the first parts of one.
  package var hint: String? {
    for (series, parts) in series.sorted(by: { $0.key < $1.key }) {
      let names = parts.sorted { $0.key < $1.key }
      // Numbers that begin elsewhere are those of days, rooms and devices.
      guard names.count > 1, names[0].key <= 1, SessionID(series.session) != nil,
        let pattern = try? SessionPattern(series.pattern),
        names.allSatisfy({ pattern.session(in: $0.value) == series.session })
      else { continue }
      let shown = "\(names[0].value) \(names.count == 2 ? "and" : "to") \(names[names.count - 1].value)"
      return "\(shown) are \(names.count) sessions; if they are parts of one, use --session-from '\(series.pattern)'"
    }
    return nil
  }
}
