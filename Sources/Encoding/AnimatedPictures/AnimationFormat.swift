import FrameBatches
import ISOMedia

/// A format of animated pictures.
package enum AnimationFormat: String, Sendable, CaseIterable {
  case gif, webp

  /// The longer side of a picture in pixels: that of a film without a size of its own, and the possible ones.
  package static let defaultSide = 480
  package static let sides = 16...2_048

  /// The name for people.
  package var name: String { self == .gif ? "GIF" : "WebP" }

  /// The unit of holds in media ticks: 10 ms, 1 ms.
  package var tick: Int64 { MediaTime.ticks(ms: self == .gif ? 10 : 1) }

  /// The shortest hold that browsers keep, in units. They show a picture of 10 ms or less for 100 ms.
  package var shortestHold: Int64 { self == .gif ? 2 : 11 }

  /// The longest hold of a stored picture, in units.
  package var longestHold: Int64 { self == .gif ? 0xFFFF : 0xFF_FFFF }

  /// Returns a hold in pieces that stored pictures have room for. None is too short for browsers, unless the hold itself is.
  package func pieces(of hold: Int64) -> [Int64] {
    var (pieces, rest): ([Int64], Int64) = ([], hold)
    while rest > longestHold {
      let piece = min(longestHold, rest - shortestHold)
      pieces.append(piece)
      rest -= piece
    }
    return pieces + [rest]
  }

  /// Returns an instant of a film in units, rounded.
  ///
  /// - Parameter ticks: media ticks from the film's start.
  package func units(_ ticks: Int64) -> Int64 { (ticks + tick / 2) / tick }

  /// - Parameter size: of the canvas; each side is in ``sides`` or below.
  /// - Throws: ``MissingEncoder``, ``FFmpegError``.
  package func encoder(_ size: PixelSize) throws -> any AnimatedPictureEncoder {
    switch self {
    case .gif: GIFEncoder(size)
    case .webp: try WebPEncoder(size)
    }
  }

  /// - Throws: ``MissingEncoder`` if the machine's libraries cannot write the format.
  package func requireEncoder() throws(MissingEncoder) {
    if self == .webp { try WebPEncoder.requireLibrary() }
  }
}
