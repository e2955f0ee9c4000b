// A picture that stays for long needs repeats at its beginning and at its end only. Where it stays over many parts of a film, a part
// waits here until its picture has stayed for long enough behind it. Pure.

import Encoding
import ISOMedia
import Sessions

/// A part of a film that is ready to be written, but for the repeats that players need.
struct FilmPart {
  var samples: SegmentSamples
  let description: VideoDescription
  /// In ticks from the film's start.
  let range: Range<Int64>
  /// Whether players need repeats in it.
  var needsRepeats = true
}

/// The last parts of a film, in all of which one picture stays.
struct HeldParts {
  /// Maximum number of parts that wait. Six seconds have more only in a film at a high speed, whose parts need hardly any repeat.
  static let most = 64
  private var parts: [FilmPart] = []

  /// Adds the film's next part.
  ///
  /// - Parameter since: since when the picture is on screen that the part shows from its beginning to its end, in ticks; nil if it
  ///   changes in the part.
  /// - Returns: the parts to write next, in order.
  mutating func add(_ part: FilmPart, since: Int64?) -> [FilmPart] {
    guard let since, since < part.range.lowerBound else { return flush() + [part] }
    parts.append(part)
    let end = part.range.upperBound
    let repeated = SegmentSamples.repeatedTicks
    var ready: [FilmPart] = []
    while var first = parts.first {
      let isLongBefore = end - first.range.upperBound >= repeated.last
      guard isLongBefore || parts.count > Self.most else { break }
      first.needsRepeats = !isLongBefore || first.range.lowerBound - since < repeated.first
      ready.append(first)
      parts.removeFirst()
    }
    return ready
  }

  /// Returns the parts that are left, at the end of the picture.
  mutating func flush() -> [FilmPart] {
    defer { parts = [] }
    return parts
  }
}
