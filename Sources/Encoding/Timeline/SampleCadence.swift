import ISOMedia

/// The cadence of repeated samples in a segment, which keeps players in time. Pure.
///
/// Chromium estimates a picture's duration from the pictures before it: a file of one sample ends at once, a short last
/// sample behind long ones is never shown, and after an irregular sample a picture may come half a second early. Samples
/// of about equal length avoid that, and so do samples of at most a quarter of a second. A hold is divided evenly,
/// because a sample that begins just before a capture makes Chromium show the wrong picture.
package struct SampleCadence: Equatable {
  /// Maximum duration of a sample, in milliseconds.
  package let sampleMs: Int64

  /// Codes every picture once.
  package static let asCaptured = SampleCadence(sampleMs: .max)
  /// A cadence for any holds.
  package static let dense = SampleCadence(sampleMs: 250)

  init(sampleMs: Int64) { self.sampleMs = sampleMs }

  /// The cadence for a segment with these holds, in milliseconds.
  package init(for holds: [Int64]) {
    let longest = holds.max() ?? 0
    let isRegular = holds.count > 1 && longest <= 1_100 && Self.isEven(holds, .asCaptured, 0.8)
    // Some three captures a second or more play in time despite jitter, unless the last hold is short.
    let isQuick = holds.count > 6 && longest <= 400 && 2 * (holds.last ?? 0) >= longest
    if isRegular || isQuick {
      self = .asCaptured
    } else {
      self = Self.isEven(holds, SampleCadence(sampleMs: 500), 0.75) ? SampleCadence(sampleMs: 500) : .dense
    }
  }

  private func sampleCount(of holdMs: Int64) -> Int64 { 1 + (holdMs - 1) / sampleMs }

  /// Returns the starts of a hold's samples, evenly spread, in ticks from its own start.
  func sampleStarts(of holdMs: Int64) -> [Int64] {
    let count = sampleCount(of: holdMs)
    return (0..<count).map { MediaTime.ticks(ms: holdMs) * $0 / count }
  }

  private static func isEven(_ holds: [Int64], _ cadence: SampleCadence, _ ratio: Double) -> Bool {
    let lengths = holds.map { Double($0) / Double(cadence.sampleCount(of: $0)) }
    return (lengths.min() ?? 0) >= ratio * (lengths.max() ?? 0)
  }
}
