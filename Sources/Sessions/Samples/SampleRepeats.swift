// Samples that repeat the picture on screen, in films and fragments: players need them. `SampleCadence` has those of segments.

import Encoding
import ISOMedia

extension SegmentSamples {
  /// The grid of a film. Chromium shows a picture too early by up to half the mean length of its recent samples.
  private static let gridMs: Int64 = 125
  /// The number of repeats at the beginning of a long hold, and at its end. The mean is of 32 samples, and Chromium takes it ahead: a
  /// long sample counts until the 34th sample behind it.
  private static let (firstRepeats, lastRepeats) = (32, 48)
  /// Maximum duration of a fragment's sample: see ``ParameterSets/atOneFrameASecond``.
  private static let longestInFragment = MediaTime.ticks(ms: 1_000)

  /// How long a picture that stays has repeats at its beginning and at its end, in ticks.
  package static let repeatedTicks = (
    first: MediaTime.ticks(ms: gridMs * Int64(firstRepeats)), last: MediaTime.ticks(ms: gridMs * Int64(lastRepeats))
  )

  /// An upper bound of the repeats that ``addRepeats(onGridFrom:)`` adds to some pictures.
  ///
  /// - Parameter lengthMs: how long they are shown, rounded down.
  package static func mostRepeats(ofPictures count: Int, lengthMs: Int64) -> Int {
    Int(min(lengthMs / gridMs + 2, Int64((firstRepeats + lastRepeats) * count)))
  }

  /// Removes the samples that only repeat the picture before: those without a text. The video of another encoder stays as it is.
  package mutating func removeRepeats() {
    guard let writer = try? SkipSliceWriter(after: parameterSets) else { return }
    var starts: Set<Int64> = []
    var now: Int64 = 0
    for text in timing {
      if text.isText { starts.insert(now) }
      now += text.duration
    }
    var samples: [Sample] = []
    now = 0
    for sample in video {
      if let last = samples.last, !starts.contains(now) {
        samples[samples.count - 1] = last.lasting(last.duration + sample.duration)
      } else {
        samples.append(sample)
      }
      now += sample.duration
    }
    guard samples.count < video.count, let numbered = try? numbered(samples, writer) else { return }
    set(video: numbered, timing: timing)
  }

  /// Repeats pictures that are shown for more than an eighth of a second, at each whole eighth of a second of the film. The
  /// video of another encoder stays as it is.
  ///
  /// Of a picture that is held for more than ten seconds, only the beginning and the end are divided. Chromium decodes some
  /// samples ahead: a long sample at the beginning would show the pictures before it too early, and one at the end those behind.
  ///
  /// - Parameter start: of the samples, in ticks from the film's start.
  package mutating func addRepeats(onGridFrom start: Int64) {
    divide(from: start, at: Self.gridRepeats)
  }

  /// Returns the starts of the repeats of a picture that a film shows in a range of ticks.
  static func gridRepeats(in range: Range<Int64>) -> [Int64] {
    let step = MediaTime.ticks(ms: gridMs)
    guard range.upperBound - range.lowerBound > step else { return [] }
    let (first, last) = (range.lowerBound / step + 1, (range.upperBound - 1) / step)
    guard first <= last else { return [] }
    let (most, mostLast) = (Int64(firstRepeats), Int64(lastRepeats))
    guard last - first >= most + mostLast else { return (first...last).map { $0 * step } }
    return [first..<first + most, last - mostLast + 1..<last + 1].joined().map { $0 * step }
  }

  /// Repeats pictures that are shown for more than a second, at each whole second before their end.
  ///
  /// WebKitGTK takes the frame rate of the parameter sets for the duration of each sample where durations differ. It then waits
  /// for ever in what is longer. A repeat within a second before the next picture would make it show the earlier one there.
  package mutating func addRepeatsOfFragment() { divide(from: 0, at: Self.fragmentRepeats) }

  /// Returns the starts of the repeats of a picture that a fragment shows in a range of ticks.
  static func fragmentRepeats(in range: Range<Int64>) -> [Int64] {
    let count = (range.upperBound - range.lowerBound - 1) / longestInFragment
    return (0..<count).map { range.upperBound - (count - $0) * longestInFragment }
  }

  /// Divides samples into a picture and its repeats.
  ///
  /// - Parameters:
  ///   - start: of the first sample.
  ///   - repeats: returns the starts of the repeats in the range of a sample.
  private mutating func divide(from start: Int64, at repeats: (Range<Int64>) -> [Int64]) {
    guard let writer = try? SkipSliceWriter(after: parameterSets) else { return }
    // All repeats are equal but for their numbers.
    let repeated = writer.picture(1)
    var samples: [Sample] = []
    var now = start
    for sample in video {
      let starts = repeats(now..<now + sample.duration)
      let bounds = starts + [now + sample.duration]
      samples.append(sample.lasting(bounds[0] - now))
      samples += zip(starts, bounds.dropFirst()).map { Sample(duration: $1 - $0, data: repeated) }
      now += sample.duration
    }
    guard samples.count > video.count else { return }
    if isOutline {
      set(video: samples, timing: timing)
    } else if let numbered = try? numbered(samples, writer) {
      set(video: numbered, timing: timing)
    }
  }
}

extension Sample {
  /// Whether it is a text of the timing track, and not one of a gap.
  fileprivate var isText: Bool { data.count > 2 }
}
