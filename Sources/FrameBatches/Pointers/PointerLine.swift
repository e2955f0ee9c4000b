/// A straight line between two positions of a pointer, or a single position, in pixels of the picture.
package struct PointerLine {
  private let x: (from: Double, to: Double)
  private let y: (from: Double, to: Double)

  package init(from: (x: Double, y: Double), to: (x: Double, y: Double)) {
    (x, y) = ((from.x, to.x), (from.y, to.y))
  }

  /// A single position.
  package init(x: Double, y: Double) { self.init(from: (x, y), to: (x, y)) }

  func moved(x across: Double, y down: Double) -> PointerLine {
    PointerLine(from: (x.from + across, y.from + down), to: (x.to + across, y.to + down))
  }

  /// Returns the coordinates in the pixels that a mask covers: from the first, up to and not including the last. An edge that is not a
  /// number after scaling lies infinitely far away.
  static func pixels(_ start: Double, _ length: Double) -> (from: Double, to: Double) {
    let (first, end) = (start.rounded(.down), (start + length).rounded(.up))
    return (first.isNaN ? -.infinity : first, end.isNaN ? .infinity : end.nextDown)
  }

  /// Whether the line and a rectangle have a point in common (Liang and Barsky's clipping).
  func meets(x columns: (from: Double, to: Double), y rows: (from: Double, to: Double)) -> Bool {
    // The part of the line inside, from 0 to 1.
    var (enters, leaves) = (0.0, 1.0)
    for (side, range) in [(x, columns), (y, rows)] {
      guard range.from <= range.to else { return false }
      let length = side.to - side.from
      if length == 0 {
        guard range.from <= side.from, side.from <= range.to else { return false }
      } else {
        let (one, other) = ((range.from - side.from) / length, (range.to - side.from) / length)
        (enters, leaves) = (max(enters, min(one, other)), min(leaves, max(one, other)))
      }
    }
    return enters <= leaves
  }
}
