// The instants that a film shows. Film time to capture time, and back: exact, in integers. Pure. docs/map.md has its JSON.

import ISOMedia

/// The map between the time of a film and the instants that it shows.
package struct FilmMap: Sendable, Equatable {
  /// A part of the film in which capture time runs evenly. Both ranges are in milliseconds, and not empty.
  package struct Piece: Sendable, Equatable {
    /// In the film at normal speed.
    package internal(set) var film: Range<Int64>
    /// Of capture, in unix milliseconds.
    package internal(set) var unix: Range<Int64>
  }

  /// In order, without a hole in film time.
  package private(set) var pieces: [Piece] = []
  /// The part of the session, in unix milliseconds, with what the film leaves out.
  package let shown: Range<Int64>
  package let speed: FilmSpeed

  /// - Parameters:
  ///   - all: in order, from 0 on, without a hole in film time.
  ///   - shown: begins with the first piece.
  init(_ all: [Piece], shown: Range<Int64>, speed: FilmSpeed) {
    (self.shown, self.speed) = (shown, speed)
    for piece in all {
      if let last = pieces.last, last.isEven, piece.isEven, last.unix.upperBound == piece.unix.lowerBound {
        pieces[pieces.count - 1].film = last.film.lowerBound..<piece.film.upperBound
        pieces[pieces.count - 1].unix = last.unix.lowerBound..<piece.unix.upperBound
      } else {
        pieces.append(piece)
      }
    }
  }

  /// The end of the film at normal speed, in milliseconds.
  private var endMs: Int64 { pieces.last?.film.upperBound ?? 0 }

  /// The duration of the film, in ticks.
  package var durationTicks: Int64 { speed.film(MediaTime.ticks(ms: endMs)) }

  /// Returns when the film shows an instant, in ticks from its start.
  ///
  /// - Parameter unixMs: unix milliseconds.
  /// - Returns: for an instant that the film leaves out, where it would be; nil outside of the part of the session.
  package func film(ofUnix unixMs: Int64) -> Int64? {
    guard shown.contains(unixMs), let index = lastPiece(where: { $0.unix.lowerBound <= unixMs }) else { return nil }
    let piece = pieces[index]
    guard piece.unix.contains(unixMs) else { return speed.film(MediaTime.ticks(ms: piece.film.upperBound)) }
    return ticks(piece, unixMs - piece.unix.lowerBound)
  }

  /// Returns the instant that the film shows, in unix milliseconds: the latest one that has begun.
  ///
  /// - Parameter ticks: from the film's start.
  /// - Returns: nil before or behind the film.
  package func unix(ofFilm ticks: Int64) -> Int64? {
    guard ticks >= 0, ticks < durationTicks, let index = lastPiece(where: { self.ticks($0, 0) <= ticks }) else {
      return nil
    }
    let piece = pieces[index]
    // The instant is the last with (start · unix + since · film) · 90 · 1000 < (ticks + 1) · unix · speed.
    let unix = Int128(piece.unix.count)
    let room =
      (Int128(ticks) + 1) * unix * Int128(speed.thousandths) - Int128(piece.film.lowerBound) * unix * Self.scale
    let since = (room - 1) / (Int128(piece.film.count) * Self.scale)
    return piece.unix.lowerBound + min(Int64(clamping: since), Int64(piece.unix.count) - 1)
  }

  /// Ticks in a millisecond at a speed of one thousandth.
  private static let scale = Int128(MediaTime.ticks(ms: 1) * 1_000)

  /// Returns the film's time of an instant in a piece, in ticks, rounded down.
  private func ticks(_ piece: Piece, _ sinceMs: Int64) -> Int64 {
    let unix = Int128(piece.unix.count)
    let normal = Int128(piece.film.lowerBound) * unix + Int128(sinceMs) * Int128(piece.film.count)
    return Int64(clamping: normal * Self.scale / (unix * Int128(speed.thousandths)))
  }

  /// Returns the index of the last piece with a property that all before it have.
  private func lastPiece(where isBefore: (Piece) -> Bool) -> Int? {
    var (low, high) = (0, pieces.count)
    while low < high {
      let middle = (low + high) / 2
      if isBefore(pieces[middle]) { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? low - 1 : nil
  }
}

extension FilmMap.Piece {
  /// Whether it runs at the film's own speed.
  fileprivate var isEven: Bool { film.count == unix.count }
}
