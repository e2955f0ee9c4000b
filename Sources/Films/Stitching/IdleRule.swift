/// The handling of idle time: time in which the picture on screen stays the same.
package struct IdleRule: Sendable, Equatable {
  /// The forms that ``init(_:)`` reads, for a message.
  package static let rule =
    "cut, cut=MS with \(keptRange.lowerBound) to \(keptRange.upperBound) ms, or speed=X with more than 1, up to 100"
  private static let keptRange: ClosedRange<Int64> = 80...3_600_000
  private static let defaultKeptMs: Int64 = 1_000

  /// `cut`: a second of each still is kept.
  static let cut = IdleRule(keptMs: defaultKeptMs)

  private init(keptMs: Int64) { (self.keptMs, speed) = (keptMs, nil) }

  /// The time of a still that the film shows as it is, in milliseconds.
  let keptMs: Int64
  /// The speed of the rest, beside that of the film; nil to leave it out.
  let speed: FilmSpeed?
  /// Whether a pointer event ends a still as a change of the picture does.
  package var endsAtPointerEvents = false

  /// A name for files.
  package var name: String {
    (speed.map { "speed-\($0)" } ?? "cut-\(keptMs)") + (endsAtPointerEvents ? "-events" : "")
  }

  /// - Returns: nil for a text that ``rule`` does not describe.
  package init?(_ text: String) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    switch (parts.first, parts.count) {
    case ("cut", 1): (keptMs, speed) = (Self.defaultKeptMs, nil)
    case ("cut", 2):
      guard parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let keptMs = Int64(parts[1]),
        Self.keptRange.contains(keptMs)
      else { return nil }
      (self.keptMs, speed) = (keptMs, nil)
    case ("speed", 2):
      guard let speed = FilmSpeed(String(parts[1])), speed.isQuick, !speed.isFast else { return nil }
      (keptMs, self.speed) = (Self.defaultKeptMs, speed)
    default: return nil
    }
  }

  /// Returns why a film at a speed cannot shorten idle time; nil if it can.
  package func fault(at speed: FilmSpeed) -> String? {
    if speed.isFast { return "a film faster than 100 leaves out pictures by itself" }
    if let own = self.speed, speed.isFast(times: own) { return "together with the film's speed it is faster than 100" }
    return nil
  }
}
