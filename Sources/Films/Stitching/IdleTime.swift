import Encoding
import ISOMedia
import Sessions

/// Idle time of a segment that a film shortens.
struct IdleTime: Equatable {
  /// In milliseconds from the segment's start.
  let range: Range<Int64>
  /// How long the film shows it at normal speed, in milliseconds; 0 if it is left out.
  let filmMs: Int64

  /// The time that the film does not show.
  var savedMs: Int64 { range.upperBound - range.lowerBound - filmMs }
}

extension StitchPlan.Part {
  /// The time of the session that the part shows, in milliseconds: its length, and the idle time that is left out.
  var sessionMs: Int64 { lengthMs + idle.reduce(0) { $0 + $1.savedMs } }

  /// Returns the film's time of an instant from the part's start, rounded down.
  ///
  /// - Parameters:
  ///   - time: from where the film enters the segment.
  ///   - scale: the units of both times in a millisecond.
  func film(_ time: Int64, scale: Int64 = 1) -> Int64 {
    var film = time
    for still in idle {
      let start = (still.range.lowerBound - skippedMs) * scale
      guard time > start else { break }
      // There may be thousands, and most are over.
      if time - start >= Int64(still.range.count) * scale {
        film -= still.savedMs * scale
        continue
      }
      let inside = min(time - start, Int64(still.range.count) * scale)
      film -= inside - Int64(Int128(inside) * Int128(still.filmMs) / Int128(still.range.count))
    }
    return film
  }

  /// The unrecorded part of the film's time, in milliseconds.
  var filmGapMs: Int64 { film(sessionMs) - film(sessionMs - gapMs) }

  /// Whether a frame that starts at an instant, in milliseconds from the segment's start, is idle time that is shortened.
  func isIdle(atMs offset: Int64) -> Bool {
    var (low, high) = (0, idle.count)
    while low < high {
      let middle = (low + high) / 2
      if idle[middle].range.upperBound <= offset { low = middle + 1 } else { high = middle }
    }
    return low < idle.count && idle[low].range.contains(offset)
  }

  /// The parts of the session at one speed, without idle time that is left out.
  var pieces: [FilmMap.Piece] {
    var pieces: [FilmMap.Piece] = []
    func add(_ range: Range<Int64>) {
      let film = startMs + film(range.lowerBound - skippedMs)..<startMs + film(range.upperBound - skippedMs)
      guard !range.isEmpty, !film.isEmpty else { return }
      pieces.append(
        FilmMap.Piece(film: film, unix: segment.startMs + range.lowerBound..<segment.startMs + range.upperBound))
    }
    var now = skippedMs
    for still in idle {
      add(now..<still.range.lowerBound)
      add(still.range)
      now = still.range.upperBound
    }
    add(now..<skippedMs + sessionMs)
    return pieces
  }
}

extension SegmentSamples {
  /// Shortens idle time. Pictures that only repeat the one before give their time to it, or go.
  ///
  /// - Parameter part: it begins with the first sample.
  /// - Throws: ``BadSession`` for samples of another encoder.
  mutating func shortenIdle(of part: StitchPlan.Part) throws(BadSession) {
    guard !part.idle.isEmpty else { return }
    let ticks = MediaTime.ticks(ms: 1)
    let mismatch = BadSession(
      part.segment.file, "samples of another kind than its manifest makes one expect",
      advice: "stitch without --idle")
    guard let writer = try? SkipSliceWriter(after: parameterSets) else { throw mismatch }
    // All repeats are equal but for their numbers.
    let repeated = writer.picture(1)
    var pictures: [Sample] = []
    // A coded picture without time of its own: a later repeat gives it some, or else the picture before it a tick.
    var waiting: Sample?
    func settle() throws(BadSession) {
      guard let picture = waiting.take() else { return }
      guard let last = pictures.last, last.duration > 1 else { throw mismatch }
      pictures[pictures.count - 1] = last.lasting(last.duration - 1)
      pictures.append(picture.lasting(1))
    }
    var now: Int64 = 0
    for (index, sample) in video.enumerated() {
      let isShortened = part.isIdle(atMs: part.skippedMs + now / ticks)
      let (start, end) = (part.film(now, scale: ticks), part.film(now + sample.duration, scale: ticks))
      now += sample.duration
      if index > 0, writer.isRepeat(sample.data, as: repeated) {
        guard end > start else { continue }
        if let picture = waiting.take() {
          pictures.append(picture.lasting(end - start))
        } else if isShortened, let last = pictures.popLast() {
          pictures.append(last.lasting(last.duration + end - start))
        } else {
          pictures.append(sample.lasting(end - start))
        }
      } else {
        try settle()
        if end > start { pictures.append(sample.lasting(end - start)) } else { waiting = sample }
      }
    }
    try settle()
    do {
      set(video: try numbered(pictures, writer), timing: shortened(timing, of: part))
    } catch {
      throw mismatch
    }
  }

  /// Texts of pictures that go do so, too.
  private func shortened(_ texts: [Sample], of part: StitchPlan.Part) -> [Sample] {
    var now: Int64 = 0
    return texts.compactMap { text in
      let start = part.film(now, scale: MediaTime.ticks(ms: 1))
      now += text.duration
      let end = part.film(now, scale: MediaTime.ticks(ms: 1))
      return end > start ? text.lasting(end - start) : nil
    }
  }
}
