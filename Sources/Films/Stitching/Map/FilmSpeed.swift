import ISOMedia

/// The speed of a film: session time to film time. Exact.
package struct FilmSpeed: Sendable, Equatable, CustomStringConvertible {
  package static let normal = FilmSpeed(thousandths: 1_000)
  /// The forms that ``init(_:)`` reads, for a message.
  package static let rule = "a number from 0.1 to 100000 with up to three decimals"

  /// Session time per 1 000 units of film time.
  let thousandths: Int64

  private init(thousandths: Int64) { self.thousandths = thousandths }

  /// - Returns: nil for a text that ``rule`` does not describe.
  package init?(_ text: String) {
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let decimals = parts.count == 2 ? parts[1] : "0"
    guard parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
      decimals.utf8.count <= 3, let whole = parts.first.flatMap({ Int64($0) }), whole <= 100_000,
      let rest = Int64(decimals + String(repeating: "0", count: 3 - decimals.utf8.count)),
      (100...100_000_000).contains(1_000 * whole + rest)
    else { return nil }
    thousandths = 1_000 * whole + rest
  }

  package var description: String {
    let decimals = (thousandths % 1_000).digits(3)
    let significant = decimals.prefix(3 - decimals.reversed().prefix { $0 == "0" }.count)
    return "\(thousandths / 1_000)" + (significant.isEmpty ? "" : ".\(significant)")
  }

  var isSlow: Bool { thousandths < 1_000 }
  var isQuick: Bool { thousandths > 1_000 }
  /// Whether the film may leave out pictures: see ``FastFilm``.
  var isFast: Bool { thousandths > 100_000 }

  /// Whether the product of two speeds is that of a film that may leave out pictures.
  func isFast(times other: FilmSpeed) -> Bool { thousandths * other.thousandths > 100_000_000 }

  /// Returns the least time at normal speed that lasts for a time of the film.
  func normal(_ time: Int64) -> Int64 { (time * thousandths + 999) / 1_000 }

  /// Returns a time of the film, rounded down.
  ///
  /// - Parameter time: from the film's start at normal speed; a session's, whose ticks times 1000 fit in 64 bits.
  func film(_ time: Int64) -> Int64 {
    self == .normal ? time : time * 1_000 / thousandths
  }
}

/// Converts the bounds of a film's samples to its speed. Each is rounded by itself, so that nothing adds up.
struct FilmClock {
  let speed: FilmSpeed
  /// The latest bound, in ticks: at normal speed, and in the film.
  private var latest: (normal: Int64, film: Int64) = (0, 0)

  init(_ speed: FilmSpeed) { self.speed = speed }

  /// Returns a bound in the film, in ticks. A sample that lasts less than a tick gets one, at the cost of the next ones.
  ///
  /// - Parameters:
  ///   - normal: at normal speed; calls are in order, and may repeat.
  ///   - most: the latest time in the film, if there is room before it.
  mutating func film(_ normal: Int64, atMost most: Int64 = .max) -> Int64 {
    if normal > latest.normal { latest = (normal, max(min(speed.film(normal), most), latest.film + 1)) }
    return latest.film
  }
}
