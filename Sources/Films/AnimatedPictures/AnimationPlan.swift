// The pictures of an animated film, and when each comes on screen. Pure.

import Encoding
import FrameBatches
import ISOMedia

package struct AnimationPlan: Equatable {
  /// A captured picture in the film.
  struct Picture: Equatable {
    /// Its index in the segment's list of frames.
    let frame: Int
    /// From the film's start, at normal speed.
    let startMs: Int64
  }

  /// The pictures of one segment.
  struct Part: Equatable {
    let segment: PublishedSegment
    let pictures: [Picture]
  }

  /// Without segments that continue the picture before.
  let parts: [Part]
  let lengthMs: Int64
  let speed: FilmSpeed
  /// The number of further captures, in idle time that is shortened: the picture before them stays.
  let idle: Int

  package init(_ plan: StitchPlan) {
    var parts: [Part] = []
    var latest: PublishedSegment.Frame?
    for part in plan.parts {
      let starts = part.segment.startsOfFrames
      let frames = part.isOnlyFirst ? part.frames.prefix(1) : part.frames
      var pictures: [Picture] = []
      for (index, frame) in zip(frames.indices, frames) {
        // The picture is on screen already.
        let isContinued = !frame.isCaptured && latest?.timeMs == frame.timeMs
        latest = frame
        guard !isContinued else { continue }
        let sinceMs = starts[index] - part.skippedMs
        if part.isIdle(atMs: starts[index]) { continue }
        let startMs = part.startMs + (sinceMs > 0 ? part.film(sinceMs) + part.earlyMs : 0)
        pictures.append(Picture(frame: index, startMs: startMs))
      }
      if !pictures.isEmpty { parts.append(Part(segment: part.segment, pictures: pictures)) }
    }
    (self.parts, idle) = (parts, plan.idleCaptures)
    lengthMs = plan.parts.reduce(0) { $0 + $1.lengthMs }
    speed = plan.speed
  }

  /// The number of pictures. Equal ones that follow one another count.
  var count: Int { parts.reduce(0) { $0 + $1.pictures.count } }

  /// Returns a time in media ticks of the film.
  func ticks(_ ms: Int64) -> Int64 { speed.film(MediaTime.ticks(ms: ms)) }

  /// The size of the picture that holds all pictures, each scaled to a maximum of its longer side.
  func size(maxSide: Int) -> PixelSize {
    let box = PixelSize(width: maxSide, height: maxSide)
    let sizes = parts.map { PixelSize(width: $0.segment.width, height: $0.segment.height).fitted(into: box) }
    return PixelSize(width: sizes.map(\.width).max() ?? 1, height: sizes.map(\.height).max() ?? 1)
  }

  // MARK: - Pace

  /// Returns a lower speed at which browsers show all pictures as they are; nil if there is none.
  func showableSpeed(as format: AnimationFormat) -> FilmSpeed? {
    var speed = Double(self.speed.description) ?? 1
    while true {
      speed *= 0.9
      // With one decimal from 1 on.
      let decimals: Double = speed < 1 ? 1_000 : 10
      guard let slower = FilmSpeed("\((speed * decimals).rounded(.down) / decimals)") else { return nil }
      if isShowable(as: format, at: slower) { return slower }
    }
  }

  /// Whether all pictures can be shown if no two of them are equal.
  private func isShowable(as format: AnimationFormat, at speed: FilmSpeed) -> Bool {
    var clock = AnimationClock<Void>(format)
    for picture in parts.lazy.flatMap(\.pictures) {
      let start = format.units(speed.film(MediaTime.ticks(ms: picture.startMs)))
      guard clock.append((), at: start) != nil else { return false }
    }
    let rest = clock.finish(at: format.units(speed.film(MediaTime.ticks(ms: lengthMs))))
    return rest?.last.map { $0.hold >= format.shortestHold } ?? false
  }
}

extension AnimationPlan {
  /// The most pixels of all pictures of a request: 15 000 pictures of 480×270, or 470 of 2048×2048.
  static let maximumRequestedPixels = 2_000_000_000
  /// The expected size of a file: a picture stores what changes, and most pixels of a screen stay. It may be larger. The disk's own
  /// error decides.
  private static let (leastBytes, pixelsAByte) = (64 << 10, 16)

  /// - Throws: ``AnimationRefusal`` for more pictures than an animated picture has.
  func requireFewPictures(as format: AnimationFormat) throws(AnimationRefusal) {
    guard count <= AnimationWriter.maximumPictures else {
      throw AnimationRefusal(format: format, fault: .pictures(count))
    }
  }

  /// Returns the size that the animated picture of a request has about, in bytes.
  ///
  /// - Throws: ``AnimationRefusal`` if it takes too long.
  package func requestedBytes(as format: AnimationFormat, maxSide: Int) throws(AnimationRefusal) -> Int {
    try requireFewPictures(as: format)
    let size = size(maxSide: maxSide)
    let pixels = count * size.width * size.height
    guard pixels <= Self.maximumRequestedPixels else {
      throw AnimationRefusal(format: format, fault: .pixels(pixels))
    }
    return max(Self.leastBytes, pixels / Self.pixelsAByte)
  }
}
