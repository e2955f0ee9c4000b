// The labels that a film shows over its pictures: as a track of texts that players show, and as WebVTT. Times follow the film's map, to the
// tick in the track, and to the millisecond, rounded down, in WebVTT. Pure.

import FileSystem
import FrameBatches
import ISOMedia
import Sessions

/// The captions of a film.
package struct FilmCaptions: Sendable, Equatable {
  /// Maximum number of texts at one instant: the latest ones are shown.
  private static let mostTexts = 3
  /// Maximum number of captions that have begun and may come on screen again.
  private static let mostOpen = 64
  /// The longest sample that readers can count, in ticks.
  private static let longestSample = MediaTime.ticks(ms: MediaTime.maximumSampleMs)

  /// In the order of their starts.
  private(set) var captions: [Caption] = []

  var isEmpty: Bool { captions.isEmpty }

  init() {}

  /// - Parameters:
  ///   - labels: in the order of their times.
  ///   - shown: the part of the session, in unix milliseconds.
  ///   - isWhole: whether it is all of the session. Then a label before its first picture, or behind its last one, is shown there.
  init(_ labels: [Label], in shown: Range<Int64>, isWhole: Bool) {
    captions = Caption.all(labels, in: shown, isWhole: isWhole)
  }

  /// Returns the captions by the time of a film, in ticks. Those of time that it leaves out are not there.
  private func cues(_ map: FilmMap) -> [(film: Range<Int64>, text: String)] {
    captions.compactMap { caption in
      let start = map.film(ofUnix: caption.unix.lowerBound) ?? 0
      let end = map.film(ofUnix: caption.unix.upperBound) ?? map.durationTicks
      return start < end ? (start..<end, caption.text) : nil
    }
  }

  // MARK: - Forms

  /// Returns the samples of a track: one for each change of the texts on screen, without a hole. They have length and text (3GPP TS 26.245,
  /// 5.17); an empty text shows nothing.
  ///
  /// - Parameter map: of the film.
  func samples(_ map: FilmMap) -> [Sample] {
    let cues = cues(map)
    let ends =
      [0, map.durationTicks] + stride(from: Self.longestSample, to: map.durationTicks, by: Int(Self.longestSample))
    let bounds = Set(cues.flatMap { [$0.film.lowerBound, $0.film.upperBound] } + ends).sorted()
    var (samples, next, open) = ([Sample](), cues[...], [(film: Range<Int64>, text: String)]())
    for (start, end) in zip(bounds, bounds.dropFirst()) {
      open.removeAll { $0.film.upperBound <= start }
      while let cue = next.first, cue.film.lowerBound <= start {
        open.append(cue)
        next = next.dropFirst()
      }
      open.removeFirst(max(0, open.count - Self.mostOpen))
      let text = Array(open.suffix(Self.mostTexts).map(\.text).joined(separator: "\n").utf8)
      let data = [UInt8(truncatingIfNeeded: text.count >> 8), UInt8(truncatingIfNeeded: text.count)] + text
      if let last = samples.last, last.data == data, last.duration + end - start <= Self.longestSample {
        samples[samples.count - 1] = last.lasting(last.duration + end - start)
      } else {
        samples.append(Sample(duration: end - start, data: data))
      }
    }
    return samples
  }

  /// Returns a WebVTT file.
  ///
  /// - Parameter map: of the film.
  package func webVTT(_ map: FilmMap) -> [UInt8] {
    var text = "WEBVTT\n"
    for (film, words) in cues(map) {
      let tick = MediaTime.ticks(ms: 1)
      let (start, end) = (film.lowerBound / tick, max(film.lowerBound / tick + 1, film.upperBound / tick))
      text += CueText.cue(start, end, words)
    }
    return Array(text.utf8)
  }
}
