// A film at a high speed has more pictures than a player can show, or decode. Pictures build on those before them in their segment,
// so such a film leaves out whole segments, and all pictures of a segment but the first. Pure.

import Encoding
import ISOMedia

/// How fast pictures may follow one another in a film at a high speed.
struct FilmPace {
  /// The time of a picture, in ticks.
  let pictureTicks: Int64
  /// Maximum number of a segment's pictures in a second of the film.
  let picturesASecond: Int64

  /// A screen shows 60 pictures a second; players decode 300: see docs/players.md.
  static let player = FilmPace(pictureTicks: 1_500, picturesASecond: 300)

  init(pictureTicks: Int64, picturesASecond: Int64) {
    (self.pictureTicks, self.picturesASecond) = (pictureTicks, picturesASecond)
  }

  init(of form: FilmForm) {
    guard case .animation(let format, _) = form else {
      self = .player
      return
    }
    let ticks = max(Self.player.pictureTicks, format.shortestHold * format.tick)
    self.init(pictureTicks: ticks, picturesASecond: MediaTime.timescale / ticks)
  }
}

extension FilmCuts {
  /// The cuts of a film that is made once, at a speed.
  package init(_ speed: FilmSpeed, _ form: FilmForm) {
    let pace = FilmPace(of: form)
    guard speed.isFast else {
      self.init(thousandths: speed.thousandths)
      return
    }
    self.init(
      pictureMs: speed.normal(pace.pictureTicks) / MediaTime.ticks(ms: 1),
      distanceMs: speed.normal(1_000) / pace.picturesASecond)
  }
}

/// The parts of a film at a high speed.
struct FastFilm {
  /// The longest time without a sample while a picture stays, in ticks: see ``SampleCadence/dense``.
  private static let stillTicks = MediaTime.ticks(ms: SampleCadence.dense.sampleMs)

  private(set) var parts: [StitchPlan.Part] = []
  /// The number of captures in the film's part of the session, and of those that the film does not show.
  private(set) var captures = 0
  private(set) var leftOut = 0

  private let speed: FilmSpeed
  private let pace: FilmPace
  /// The capture on screen at the end of the parts so far.
  private var shownMs: Int64?
  /// The end of what the last part shows, without what is left out behind it.
  private var endMs: Int64 = 0

  /// - Parameter all: the parts of the film if nothing were left out; at least one.
  init(_ all: [StitchPlan.Part], _ speed: FilmSpeed, _ pace: FilmPace) {
    (self.speed, self.pace) = (speed, pace)
    var latestMs: Int64?
    for part in all {
      let frames = part.frames
      captures += frames.captures - (frames.first?.timeMs == latestMs ? 1 : 0)
      latestMs = frames.last?.timeMs
      add(part, frames)
    }
    let last = all[all.count - 1]
    // A film of less than a tick.
    if parts.isEmpty { append(all[0], all[0].frames.prefix(1), isOnlyFirst: true) }
    end(atMs: last.startMs + last.lengthMs)
    leftOut = captures - shown
  }

  /// The number of captures that the film shows.
  private var shown = 0

  private func ticks(_ ms: Int64) -> Int64 { speed.film(MediaTime.ticks(ms: ms)) }

  /// Adds a part, unless no screen would show it.
  private mutating func add(_ part: StitchPlan.Part, _ frames: ArraySlice<PublishedSegment.Frame>) {
    let range = ticks(part.startMs)..<ticks(part.startMs + part.lengthMs)
    let count = Int64(part.segment.isImported ? part.segment.samples : frames.count)
    let isDense = count * MediaTime.timescale > pace.picturesASecond * (range.upperBound - range.lowerBound)
    let isOnlyFirst = range.upperBound - range.lowerBound < pace.pictureTicks || isDense
    let new = isOnlyFirst ? frames.prefix(1) : frames
    let isStill = new.count == 1 && new.first?.timeMs == shownMs
    guard Self.hasMultiple(of: isStill ? Self.stillTicks : pace.pictureTicks, range) else { return }
    append(part, new, isOnlyFirst: isOnlyFirst)
  }

  private mutating func append(
    _ part: StitchPlan.Part, _ frames: ArraySlice<PublishedSegment.Frame>, isOnlyFirst: Bool
  ) {
    var part = part
    // The picture may have been captured in a segment that is left out.
    let sinceMs = frames.first.map { part.segment.startMs + part.skippedMs - $0.timeMs } ?? 0
    let isStill = frames.first?.timeMs == shownMs
    part.earlyMs = parts.isEmpty ? part.startMs : isStill ? 0 : min(max(0, sinceMs), part.startMs - endMs)
    // The time of pictures that are left out can be that of the next one.
    endMs = part.startMs + (isOnlyFirst ? part.firstHoldMs : part.lengthMs)
    part.startMs -= part.earlyMs
    part.isOnlyFirst = isOnlyFirst
    if !parts.isEmpty { end(atMs: part.startMs) }
    shown += frames.captures - (isStill ? 1 : 0)
    shownMs = frames.last?.timeMs
    parts.append(part)
  }

  /// Makes the last part last until an instant of the film.
  private mutating func end(atMs endMs: Int64) {
    var part = parts.removeLast()
    let lengthMs = endMs - part.startMs
    if part.gapMs > 0 { part.gapMs = max(0, part.gapMs + lengthMs - part.earlyMs - part.lengthMs) }
    part.lengthMs = lengthMs
    // The picture and the gap need a tick each.
    if ticks(endMs) - ticks(part.startMs) < 2 { part.gapMs = 0 }
    parts.append(part)
  }

  private static func hasMultiple(of step: Int64, _ range: Range<Int64>) -> Bool {
    (range.lowerBound + step - 1) / step * step < range.upperBound
  }
}

extension ArraySlice<PublishedSegment.Frame> {
  /// The number of captures: a long hold is several frames of one.
  fileprivate var captures: Int { count - Swift.zip(self, dropFirst()).count { $0.timeMs == $1.timeMs } }
}

extension StitchPlan.Part {
  /// The time of its first picture.
  fileprivate var firstHoldMs: Int64 {
    min(lengthMs, (segment.startsOfFrames.first { $0 > skippedMs } ?? .max) - skippedMs)
  }

  /// The frames that are shown in the part.
  var frames: ArraySlice<PublishedSegment.Frame> {
    let starts = segment.startsOfFrames
    let first = starts.lastIndex { $0 <= skippedMs } ?? 0
    let end = starts.firstIndex { $0 >= skippedMs + sessionMs - earlyMs } ?? starts.count
    return segment.frames[first..<max(first + 1, end)]
  }
}
