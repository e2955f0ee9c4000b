// Finds stills: the longest times without a change of the picture on screen. A still goes on over the segments of a batch, over
// batches and over gaps that the film holds. Pure.

import Encoding
import ISOMedia
import Sessions

/// The idle time of a film that its parts shorten.
package struct Stills {
  /// Returns whether two segments begin with equal key frames.
  package typealias KeyComparison = (PublishedSegment, PublishedSegment) throws -> Bool

  /// No picture that is shown is shorter in the film: a picture of 25 a second.
  static let shortestMs: Int64 = 40

  /// The parts, shortened. Those without time are left out.
  private(set) var parts: [StitchPlan.Part] = []
  /// The number of segments of another encoder, whose time stays as it is.
  private(set) var foreign = 0
  /// The number of captures in time that is shortened.
  private(set) var captures = 0

  private let rule: IdleRule
  private let speed: FilmSpeed

  /// - Parameters:
  ///   - all: the parts of the film with all idle time; at least one.
  ///   - pointersMs: the instants of pointer events that end a still, in unix milliseconds, in order.
  init(
    _ all: [StitchPlan.Part], _ rule: IdleRule, _ speed: FilmSpeed, pointersMs: [Int64], haveEqualKeys: KeyComparison
  ) rethrows {
    (self.rule, self.speed) = (rule, speed)
    foreign = all.count { $0.segment.isImported }
    let ends = try Self.changes(in: all, haveEqualKeys) + Self.instants(pointersMs, in: all)
    var idle = Array(repeating: [IdleTime](), count: all.count)
    let bounds = Set(ends).sorted()
    var place = 0
    for (start, end) in zip(bounds, bounds.dropFirst()) {
      while place + 1 < all.count, all[place].endMs <= start { place += 1 }
      guard let range = shortened(start..<end, in: all, from: place) else { continue }
      share(range, among: all, from: place, &idle)
    }
    var now: Int64 = 0
    for (part, times) in zip(all, idle) {
      var part = part
      part.startMs = now
      part.idle = times
      part.lengthMs -= times.reduce(0) { $0 + $1.savedMs }
      let starts = part.segment.startsOfFrames
      captures += zip(part.frames.indices, part.frames).count { $1.isCaptured && part.isIdle(atMs: starts[$0]) }
      now += part.lengthMs
      if part.lengthMs > 0 { parts.append(part) }
    }
  }

  // MARK: - Changes

  /// Returns the bounds of stills, in milliseconds from the start of the film with all idle time, and its end.
  private static func changes(in all: [StitchPlan.Part], _ haveEqualKeys: KeyComparison) rethrows -> [Int64] {
    var changes: [Int64] = []
    var before: (segment: PublishedSegment, frame: PublishedSegment.Frame)?
    for part in all {
      let starts = part.segment.startsOfFrames
      for (index, frame) in zip(part.frames.indices, part.frames) {
        let atMs = part.startMs + max(0, starts[index] - part.skippedMs)
        if try !isStill(frame, index, of: part.segment, after: before, haveEqualKeys) { changes.append(atMs) }
        before = (part.segment, frame)
      }
      // Its samples are not ours: no still may reach into it.
      if part.segment.isImported { changes += [part.startMs, part.endMs] }
    }
    return changes + [all.first?.startMs ?? 0, all.last?.endMs ?? 0]
  }

  /// Whether a frame shows the picture that is on screen before it.
  private static func isStill(
    _ frame: PublishedSegment.Frame, _ index: Int, of segment: PublishedSegment,
    after before: (segment: PublishedSegment, frame: PublishedSegment.Frame)?, _ haveEqualKeys: KeyComparison
  ) rethrows -> Bool {
    guard let before, !segment.isImported else { return false }
    if !frame.isCaptured { return frame.timeMs == before.frame.timeMs }
    // Equal pictures have other texts.
    if segment.hasOverlayOfInstants { return false }
    if index > 0 { return frame.changedBlocks == 0 }
    if segment.isNextPart(after: before.segment) { return frame.changedBlocks == 0 }
    return try areOne(before.segment, segment, haveEqualKeys)
  }

  /// Whether a batch begins with the picture that is on screen before it: only the key frames tell.
  package static func areOne(
    _ before: PublishedSegment, _ segment: PublishedSegment, _ haveEqualKeys: KeyComparison
  ) rethrows -> Bool {
    try segment.part == 1 && !segment.isImported && !before.isImported && segment.pictureKind == before.pictureKind
      && before.isStill && haveEqualKeys(before, segment)
  }

  /// Returns instants in milliseconds from the start of the film with all idle time.
  private static func instants(_ unixMs: [Int64], in all: [StitchPlan.Part]) -> [Int64] {
    var rest = unixMs[...]
    var instants: [Int64] = []
    for part in all {
      rest = rest.drop { $0 < part.shown.lowerBound }
      while let next = rest.first, next < part.shown.upperBound {
        instants.append(part.startMs + next - part.shown.lowerBound)
        rest.removeFirst()
      }
    }
    return instants
  }

  // MARK: - Shortening

  /// Returns the time of a still that is shortened; nil if the still is too short.
  ///
  /// - Parameter place: the index of the part with its start.
  private func shortened(_ still: Range<Int64>, in all: [StitchPlan.Part], from place: Int) -> Range<Int64>? {
    guard !all[place].segment.isImported else { return nil }
    // In a film that is faster, each picture lasts as long.
    let tailMs = speed.normal(Self.shortestMs)
    let keptMs = max(rule.keptMs, 2 * tailMs)
    let restMs = Int64(still.count) - keptMs
    guard restMs > 0 else { return nil }
    // A change inside of a later segment needs its key frame, which shows the end of the still.
    var last = place
    while last + 1 < all.count, all[last].endMs < still.upperBound { last += 1 }
    let shownMs = min(tailMs, still.upperBound - all[last].startMs)
    let isBehind = last > place && still.upperBound < all[last].endMs
    let endMs =
      isBehind && all[last].startMs >= still.lowerBound + keptMs - shownMs
      ? still.upperBound - shownMs : still.upperBound
    return endMs - restMs..<endMs
  }

  /// Divides time that is shortened among the parts that show it.
  private func share(
    _ range: Range<Int64>, among all: [StitchPlan.Part], from place: Int, _ idle: inout [[IdleTime]]
  ) {
    func filmMs(_ ms: Int64) -> Int64 { rule.speed.map { $0.film(ms - range.lowerBound) } ?? 0 }
    for (index, part) in zip(all.indices[place...], all[place...]) {
      guard part.startMs < range.upperBound else { return }
      // The bounds of a gap are those of a text: they get a whole millisecond of the film.
      let gapStartMs = part.endMs - part.gapMs
      for piece in [part.startMs..<gapStartMs, gapStartMs..<part.endMs] {
        let own = piece.clamped(to: range)
        guard !own.isEmpty else { continue }
        let offset = part.skippedMs - part.startMs
        idle[index].append(
          IdleTime(
            range: own.lowerBound + offset..<own.upperBound + offset,
            filmMs: filmMs(own.upperBound) - filmMs(own.lowerBound)))
      }
    }
  }
}

extension StitchPlan.Part {
  /// Its end in the film, at normal speed.
  var endMs: Int64 { startMs + lengthMs }
}

extension PublishedSegment {

  /// Whether it shows one picture.
  package var isStill: Bool { frames.dropFirst().allSatisfy { !$0.isCaptured || $0.changedBlocks == 0 } }
}

extension SegmentVideos {
  /// Compares the key frames of segments. A segment that is compared with the one before and then with the one behind it is read
  /// once.
  package var keyComparison: Stills.KeyComparison {
    var latest: (startMs: Int64, key: [UInt8]?)?
    func key(_ segment: PublishedSegment) throws -> [UInt8]? {
      if let latest, latest.startMs == segment.startMs { return latest.key }
      let key = try SegmentTracks(of: segment, bytes: video(of: segment), reader: reader).video.first?.data
      latest = (segment.startMs, key)
      return key
    }
    return { one, other in try key(one) == key(other) }
  }
}
