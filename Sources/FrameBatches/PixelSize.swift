package struct PixelSize: Sendable, Hashable {
  package let width: Int
  package let height: Int

  package init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// Whether a picture of this size has at least one pixel and is within the limits.
  package func isWithin(_ limits: Limits) -> Bool {
    min(width, height) > 0 && max(width, height) <= limits.side && width * height <= limits.pixels
  }

  /// Returns the largest size that fits into a box with the same proportions; this size if it fits already.
  package func fitted(into box: PixelSize) -> PixelSize {
    guard width > box.width || height > box.height else { return self }
    // The tighter side decides; the other is rounded to the nearest pixel.
    if width * box.height >= height * box.width {
      return PixelSize(width: box.width, height: max(1, (2 * height * box.width + width) / (2 * width)))
    }
    return PixelSize(width: max(1, (2 * width * box.height + height) / (2 * height)), height: box.height)
  }
}
