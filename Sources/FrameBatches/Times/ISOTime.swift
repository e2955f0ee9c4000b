/// Times in ISO 8601.
enum ISOTime {
  /// All forms of a date and time of day, with `:`, `-` or `_` in the time: in file names a colon is rare.
  static let patterns: [NamePattern] = {
    let extended = [":", "-", "_"].map { "%Y-%m-%dT%H\($0)%M\($0)%S" }
    return (extended + ["%Y%m%dT%H%M%S"]).flatMap { time in
      [".%f%z", "%z", ".%f", ""].compactMap { NamePattern(time + $0) }
    }
  }()

  /// Returns the instant of a text with a zone, in unix milliseconds.
  static func instant(in text: String) -> Int64? {
    for pattern in patterns where !pattern.needsZone {
      if let match = pattern.match(text) { return NamedTime(match, zone: nil)?.instants.first }
    }
    return nil
  }
}
