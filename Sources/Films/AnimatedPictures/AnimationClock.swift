// The holds of an animated picture, in units of its format. Each picture starts at its rounded instant, so that rounding never adds
// up. Pictures that follow one another faster than browsers show them are moved, by 100 ms at most.

import Encoding
import ISOMedia

/// Places pictures one after the other. Those that may still move are kept.
struct AnimationClock<Picture> {
  /// A picture and its hold.
  typealias Held = (picture: Picture, hold: Int64)

  private let shortestHold: Int64
  /// How far a picture may be moved.
  private let maximumShift: Int64
  private var pending: [(picture: Picture, start: Int64, placed: Int64)] = []
  /// The most pictures whose places may still change.
  private static var maximumPending: Int { 32 }
  private static var maximumShiftMs: Int64 { 100 }

  init(shortestHold: Int64, maximumShift: Int64) {
    (self.shortestHold, self.maximumShift) = (shortestHold, maximumShift)
  }

  init(_ format: AnimationFormat) {
    self.init(shortestHold: format.shortestHold, maximumShift: format.units(MediaTime.ticks(ms: Self.maximumShiftMs)))
  }

  /// Adds a picture that starts at an instant; calls are in order, the first one at 0.
  ///
  /// - Returns: pictures whose holds are known now; nil if the pictures follow one another too fast.
  mutating func append(_ picture: Picture, at start: Int64) -> [Held]? {
    let placed = pending.last.map { max(start, $0.placed + shortestHold) } ?? start
    guard placed - start <= maximumShift else { return nil }
    pending.append((picture, start, placed))
    guard pending.count > Self.maximumPending else { return [] }
    let first = pending.removeFirst()
    return [(first.picture, pending[0].placed - first.placed)]
  }

  /// Returns the remaining pictures; nil if the last ones follow one another too fast.
  ///
  /// - Parameter end: of the film.
  mutating func finish(at end: Int64) -> [Held]? {
    // A film lasts a unit at least.
    let end = max(1, end)
    let moved = placedEarlier(before: end)
    // Without room, only the last hold is too short.
    guard let places = moved ?? (pending.last.map { $0.placed < end } == true ? pending.map(\.placed) : nil) else {
      return pending.isEmpty ? [] : nil
    }
    let ends = places.dropFirst() + [end]
    defer { pending = [] }
    return zip(pending, zip(places, ends)).map { ($0.picture, $1.1 - $1.0) }
  }

  /// Returns the places of the pictures, so that the last ones are held long enough; nil if there is no room.
  private func placedEarlier(before end: Int64) -> [Int64]? {
    var places = pending.map(\.placed)
    var latest = end - shortestHold
    for index in places.indices.reversed() where places[index] > latest {
      places[index] = latest
      // The start of the first one is written already, or 0.
      guard index > 0, pending[index].start - latest <= maximumShift else { return nil }
      latest -= shortestHold
    }
    return places.isEmpty ? nil : places
  }
}
