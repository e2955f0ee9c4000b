// The samples of a segment that a film shows in part, or at another speed.

import Encoding
import ISOMedia
import Sessions

extension SegmentSamples {
  /// Removes what is shown before an instant. The picture on screen then becomes the first one, for the rest of its time.
  ///
  /// - Returns: the start of the first picture's sample, in ticks from the segment's start. Unless it is 0, the picture refers to
  ///   others: see ``open(with:)``.
  mutating func removeBeginning(ofMs lengthMs: Int64) -> Int64 {
    let length = MediaTime.ticks(ms: lengthMs)
    let (pictures, start) = Self.removing(length, from: video)
    let opened = start > 0 ? opened(pictures) : nil
    set(video: opened ?? pictures, timing: Self.removing(length, from: timing).samples)
    return opened == nil ? start : 0
  }

  /// Returns the pictures with the segment's key frame in place of the first one.
  ///
  /// - Parameter pictures: the end of ``video``.
  /// - Returns: nil if the picture is another one by then.
  private func opened(_ pictures: [Sample]) -> [Sample]? {
    guard let key = video.first, let first = pictures.first, let writer = try? SkipSliceWriter(after: parameterSets)
    else { return nil }
    let repeated = writer.picture(1)
    let before = video.dropFirst().prefix(video.count - pictures.count)
    guard before.allSatisfy({ writer.isRepeat($0.data, as: repeated) }) else { return nil }
    return try? numbered([key.lasting(first.duration)] + pictures.dropFirst(), writer)
  }

  private static func removing(_ length: Int64, from samples: [Sample]) -> (samples: [Sample], start: Int64) {
    var rest = samples[...]
    var start: Int64 = 0
    while let first = rest.first, start + first.duration <= length {
      start += first.duration
      rest.removeFirst()
    }
    guard let first = rest.first else { return ([], start) }
    return ([first.lasting(start + first.duration - length)] + rest.dropFirst(), start)
  }

  /// Makes a key frame of the first picture, and numbers the pictures from there.
  ///
  /// - Parameter planes: returns its decoded planes.
  /// - Throws: ``SegmentMismatch`` for a video of another encoder.
  mutating func open(with planes: (KeyPictureWriter) throws -> [UInt8]) throws {
    let writer = try KeyPictureWriter(for: parameterSets)
    let key = Sample(duration: video[0].duration, data: try writer.picture(planes(writer)))
    set(video: try numbered([key] + video.dropFirst(), SkipSliceWriter(after: parameterSets)), timing: timing)
    parameterSets.keyPicture = writer.parameterSet
  }

  /// Moves all bounds of samples to another speed.
  ///
  /// - Parameters:
  ///   - start: of the samples, in ticks from the film's start at normal speed.
  ///   - clock: of the film; segments are in order.
  mutating func retime(from start: Int64, _ clock: inout FilmClock) {
    let bounds = [video, timing].map { $0.reduce(into: [start]) { $0.append($0[$0.count - 1] + $1.duration) } }
    var film: [Int64: Int64] = [:]
    let all = Set(bounds.joined()).sorted()
    // A fast film ends each part in time: bounds that are too close begin earlier.
    let end = clock.speed.isFast ? all.last.map(clock.speed.film) ?? 0 : .max
    for (index, bound) in all.enumerated() {
      film[bound] = clock.film(bound, atMost: end - Int64(all.count - 1 - index))
    }
    func retimed(_ samples: [Sample], _ bounds: [Int64]) -> [Sample] {
      samples.indices.map { index in
        samples[index].lasting((film[bounds[index + 1]] ?? 0) - (film[bounds[index]] ?? 0))
      }
    }
    set(video: retimed(video, bounds[0]), timing: retimed(timing, bounds[1]))
  }

  /// Shows only the first picture.
  ///
  /// - Parameter gapMs: the unrecorded part of its time, at the end.
  mutating func keepFirst(forMs lengthMs: Int64, gapMs: Int64) {
    guard let picture = video.first, let text = timing.first else { return }
    let (length, gap) = (MediaTime.ticks(ms: lengthMs), MediaTime.ticks(ms: gapMs))
    let texts = [text.lasting(length - gap)] + (gap > 0 ? [.gap(lasting: gap)] : [])
    set(video: [picture.lasting(length)], timing: texts)
  }

  /// Shows the first picture for longer, before the others.
  mutating func lead(byMs earlyMs: Int64) {
    guard earlyMs > 0, let picture = video.first, let text = timing.first else { return }
    let early = MediaTime.ticks(ms: earlyMs)
    set(
      video: [picture.lasting(picture.duration + early)] + video.dropFirst(),
      timing: [text.lasting(text.duration + early)] + timing.dropFirst())
  }
}
