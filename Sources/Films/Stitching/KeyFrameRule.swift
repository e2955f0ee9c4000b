/// How often a film has a key frame while its picture stays. Where the picture changes, the film has those of its segments.
package struct KeyFrameRule: Sendable, Equatable {
  /// A player decodes as much to show an instant. `FilmCuts` has segments as long.
  package static let limits = Int64(0)...600
  /// The default of a film.
  package static let standard = KeyFrameRule(unchecked: 120)

  /// Maximum seconds of the film without a key frame; 0 keeps that of each segment.
  package let seconds: Int64

  /// - Returns: nil if the number is not in ``limits``.
  package init?(seconds: Int64) {
    guard Self.limits.contains(seconds) else { return nil }
    self.init(unchecked: seconds)
  }

  private init(unchecked seconds: Int64) { self.seconds = seconds }
}
