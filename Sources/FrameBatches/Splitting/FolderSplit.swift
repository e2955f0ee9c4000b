// Cuts the pictures of a folder into batches. Pure: frames in the order of their captures in, ranges out. A cut depends only on the
// frames before it, so no cut moves when the folder grows.

/// The limits that each batch of a folder keeps.
package struct PartLimits: Sendable {
  /// Maximum bytes of a batch.
  package struct Size: Sendable {
    let most: Int
    /// Returns the bytes that a frame adds.
    let bytes: @Sendable (Frame) -> Int

    package init(most: Int, bytes: @escaping @Sendable (Frame) -> Int) { (self.most, self.bytes) = (most, bytes) }
  }

  private let frames: Int
  private let segments: Int
  private let maxHoldMs: Int64?
  private let segmentMs: Int64
  private let sizes: [Size]

  /// - Parameters:
  ///   - maxHoldMs: the maximum hold of captures at an interval; nil if nobody knows it yet.
  ///   - segmentMs: the length of a full segment.
  package init(
    _ limits: Limits, maxHoldMs: Int64? = DefaultLengths.maxHoldMs, segmentMs: Int64 = DefaultLengths.segmentMs,
    sizes: [Size] = []
  ) {
    (frames, segments, self.sizes) = (limits.frames, limits.segments, sizes)
    (self.maxHoldMs, self.segmentMs) = (maxHoldMs, segmentMs)
  }

  /// Maximum number of segments that a hold needs.
  private func segments(ofMs holdMs: Int64, _ capture: Batch.Capture) -> Int {
    Int((capture == .onChange ? holdMs : min(holdMs, maxHoldMs ?? holdMs)) / segmentMs) + 1
  }

  /// Returns the parts of a folder.
  ///
  /// Each part has as many frames as the limits allow. Its last hold does not count towards the segments, because it may change when
  /// the folder grows. The frames of one instant stay together.
  ///
  /// - Parameter frames: in the order of their captures.
  /// - Returns: at least one range.
  package func ranges(of frames: [Frame], _ capture: Batch.Capture) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var start = 0
    // The needs of the part up to the instant.
    var needed = Need(sizes: sizes.count)
    var index = 0
    while index < frames.count {
      let timeMs = frames[index].timeMs
      let end = frames[index...].firstIndex { $0.timeMs != timeMs } ?? frames.count
      var instant = Need(sizes: sizes.count)
      instant.frames = end - index
      instant.segments = end - index
      for (size, limit) in sizes.enumerated() {
        instant.bytes[size] = frames[index..<end].reduce(0) { $0 + limit.bytes($1) }
      }
      if index > start, !allows(needed + instant) {
        ranges.append(start..<index)
        start = index
        needed = Need(sizes: sizes.count)
      }
      if end < frames.count { instant.segments += segments(ofMs: frames[end].timeMs - timeMs, capture) - 1 }
      needed = needed + instant
      index = end
    }
    return ranges + [start..<frames.count]
  }

  private func allows(_ need: Need) -> Bool {
    need.frames <= frames && need.segments <= segments && zip(need.bytes, sizes).allSatisfy { $0 <= $1.most }
  }

  private struct Need {
    var frames = 0
    var segments = 0
    var bytes: [Int]

    init(sizes: Int) { bytes = Array(repeating: 0, count: sizes) }

    static func + (one: Need, other: Need) -> Need {
      var sum = one
      sum.frames += other.frames
      sum.segments += other.segments
      for index in sum.bytes.indices { sum.bytes[index] += other.bytes[index] }
      return sum
    }
  }
}
