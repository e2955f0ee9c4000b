/// An event of a finger, pen or mouse on the recorded screen, as its recorder captured it.
package struct PointerEvent: Sendable, Equatable {
  /// The kinds, with their names in `batch.json` and in manifests.
  package enum Kind: String, Sendable, CaseIterable {
    case down, move, up
    /// The pointer is no longer followed. It was not lifted.
    case cancel
  }

  /// The largest coordinate, in either direction: far beyond any screen.
  package static let maximumCoordinate = 1_000_000.0

  /// Unix milliseconds.
  package let timeMs: Int64
  package let kind: Kind
  /// Tells fingers apart; 0 for a recorder that does not.
  package let pointer: Int32
  /// To a hundredth of the space's unit.
  package let x: Double
  package let y: Double
  package let space: PointerSpace

  /// - Returns: nil for coordinates that are not finite, or too large.
  package init?(timeMs: Int64, kind: Kind, pointer: Int32, x: Double, y: Double, space: PointerSpace) {
    guard let x = Self.coordinate(x), let y = Self.coordinate(y) else { return nil }
    (self.timeMs, self.kind, self.pointer, self.x, self.y, self.space) = (timeMs, kind, pointer, x, y, space)
  }

  /// Returns a coordinate to a hundredth; nil if it is not finite, or too large.
  package static func coordinate(_ value: Double) -> Double? {
    guard value.isFinite, abs(value) <= maximumCoordinate else { return nil }
    // The sum turns -0 into 0.
    return (value * 100).rounded() / 100 + 0
  }

  /// The event as a text for the batch's digest. Equal events have equal texts, in every version of this program.
  var canonicalText: String { "\(timeMs) \(kind.rawValue) \(pointer) \(x) \(y) \(space.canonicalText)" }

  /// Returns the same event in another space.
  func located(in space: PointerSpace) -> PointerEvent? {
    PointerEvent(timeMs: timeMs, kind: kind, pointer: pointer, x: x, y: y, space: space)
  }

  /// Returns the same event at another time.
  func at(_ timeMs: Int64) -> PointerEvent? {
    PointerEvent(timeMs: timeMs, kind: kind, pointer: pointer, x: x, y: y, space: space)
  }
}

/// The coordinates of pointer events, and the place of the picture in them.
package enum PointerSpace: Sendable, Equatable {
  /// The origin is the upper left corner of the picture. A unit has so many pixels of it.
  case picture(scale: Double)
  /// The whole picture fills a rectangle: a window in points, for example.
  case area(x: Double, y: Double, width: Double, height: Double)

  /// Pixels of the picture.
  package static let pixels = PointerSpace.picture(scale: 1)

  /// Returns the upper left corner of the picture.
  package var origin: (x: Double, y: Double) {
    if case .area(let x, let y, _, _) = self { (x, y) } else { (0, 0) }
  }

  /// Returns the size of the picture in units, to a hundredth; nil if it is not a usable one.
  ///
  /// - Parameter picture: its size in pixels.
  package func size(of picture: PixelSize) -> (width: Double, height: Double)? {
    let (width, height) =
      switch self {
      case .picture(let scale): (Double(picture.width) / scale, Double(picture.height) / scale)
      case .area(_, _, let width, let height): (width, height)
      }
    guard let width = PointerEvent.coordinate(width), let height = PointerEvent.coordinate(height), width > 0,
      height > 0
    else { return nil }
    return (width, height)
  }

  fileprivate var canonicalText: String {
    switch self {
    case .picture(let scale): "\(scale)"
    case .area(let x, let y, let width, let height): "\(x) \(y) \(width) \(height)"
    }
  }
}
