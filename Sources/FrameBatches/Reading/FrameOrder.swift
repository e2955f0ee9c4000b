// Puts the frames of a batch into the order of their captures, and says where that differs from the recorder's order. Of several
// frames at one instant, the one to show comes first: the others are shown only if it cannot be decoded.

import FileSystem

/// The frames of a batch in the order of their captures.
struct FrameOrder {
  /// A frame, and its place in the recorder's order.
  private struct Placed {
    let place: Int
    var frame: Frame
  }

  private(set) var frames: [Frame] = []
  /// Frames whose instants cannot be used.
  private(set) var refused: [RefusedFrame] = []
  /// Whether a refused frame has masks.
  private(set) var hasLostMasks = false
  private(set) var warnings: [String] = []

  /// Maximum number of frames with a note on the recorder's order; a list in reverse order has a note for each frame.
  private static let maximumNotes = 20

  init(_ draft: BatchDraft, in contents: any BatchContents, limits: Limits) throws {
    let all = draft.frames.enumerated().map { Placed(place: $0.offset, frame: $0.element) }
    let sorted = all.filter { limits.instants.contains($0.frame.timeMs) }
      .sorted { ($0.frame.timeMs, -$0.place) < ($1.frame.timeMs, -$1.place) }
    refused = all.compactMap { placed in
      limits.fault(ofInstant: placed.frame.timeMs).map { RefusedFrame(source: placed.frame.source, reason: $0) }
    }
    if refused.isMany(of: all.count), let first = refused.first {
      warnings.append(
        "\(refused.count) of \(all.count) frames have times that cannot be used; the first is \(first.source): "
          + first.reason)
    }
    var kept = withoutJumps(sorted, isListed: draft.isListed, limits: limits)
    warnOfDoubtfulTimes(kept, limits)
    hasLostMasks = all.count { $0.frame.look.hidesAnything } > kept.count { $0.frame.look.hidesAnything }
    if draft.isListed { noteSteps(in: &kept) }
    let isRecord = contents.names.isEmpty
    try Self.rank(&kept) { group in
      isRecord ? group : try Self.ranked(group, isListed: draft.isListed, in: contents)
    }
    frames = kept.map(\.frame)
    warnOfEqualInstants(isRecord: isRecord, draft.adviceOnEqualInstants)
  }

  /// Videos tell how long they last: of several at one instant, their reader decides.
  init(ofVideos videos: [Frame], _ limits: Limits) {
    frames = videos.filter { limits.instants.contains($0.timeMs) }.sorted {
      ($0.timeMs, $0.source) < ($1.timeMs, $1.source)
    }
    refused = videos.compactMap { video in
      limits.fault(ofInstant: video.timeMs).map { RefusedFrame(source: video.source, reason: $0) }
    }
  }

  // MARK: - Clocks

  /// Refuses a few frames that are far from all others, or far from those around them in a list: their clock was wrong. A pause between
  /// larger groups of frames is no jump.
  private mutating func withoutJumps(_ frames: [Placed], isListed: Bool, limits: Limits) -> [Placed] {
    guard let first = frames.first, let last = frames.last, last.frame.timeMs - first.frame.timeMs > limits.pauseMs
    else { return frames }
    var kept = refusing(Self.groups(frames, apartBy: limits.jumpMs), limits.jumpMs, Self.remedy) { _, _ in true }
    guard isListed else { return kept }
    let correction = { (_: [ArraySlice<Placed>]) in
      "they are listed between frames of another time: correct their times"
    }
    kept = refusing(Self.groups(kept, apartBy: limits.pauseMs), limits.pauseMs, correction) { group, most in
      let places = most.map(\.place)
      let range = (places.min() ?? 0)...(places.max() ?? 0)
      return group.allSatisfy { range.contains($0.place) }
    }
    return kept
  }

  /// The largest number of frames that a wrong clock may have given a time: these, or a tenth of the batch, and not half of it.
  private static let fewFrames = 3

  /// Refuses the groups that satisfy a predicate, with the largest group as its second argument, unless they are many frames.
  private mutating func refusing(
    _ groups: [ArraySlice<Placed>], _ distanceMs: Int64, _ remedy: ([ArraySlice<Placed>]) -> String,
    _ isWrong: (ArraySlice<Placed>, ArraySlice<Placed>) -> Bool
  ) -> [Placed] {
    let total = groups.reduce(0) { $0 + $1.count }
    // Of several largest groups, keep the first.
    guard groups.count > 1,
      let most = groups.max(by: { ($0.count, -$0.startIndex) < ($1.count, -$1.startIndex) }),
      case let wrong = groups.filter({ $0.startIndex != most.startIndex && isWrong($0, most) }),
      case let count = wrong.reduce(0, { $0 + $1.count }), count > 0,
      count <= max(Self.fewFrames, total / 10), 2 * count < total
    else { return Array(groups.joined()) }
    let starts = Set(wrong.map(\.startIndex))
    refused += wrong.joined().map {
      RefusedFrame(
        source: $0.frame.source,
        reason: "instant \($0.frame.timeMs) is more than \(distanceMs) ms from the others: a clock that jumped")
    }
    warnings.append(
      "\(count) of \(total) frames are refused, because they are more than \(Self.days(distanceMs)) from the others: a clock "
        + "that jumped; the first is \(wrong[0][wrong[0].startIndex].frame.source); \(remedy(groups))")
    return Array(groups.filter { !starts.contains($0.startIndex) }.joined())
  }

  /// Returns the option that keeps all groups.
  private static func remedy(_ groups: [ArraySlice<Placed>]) -> String {
    let pauses = zip(groups, groups.dropFirst()).map {
      $1[$1.startIndex].frame.timeMs - $0[$0.endIndex - 1].frame.timeMs
    }
    return "if the pause is real, --max-jump \(pauses.max() ?? 0) keeps them"
  }

  /// Returns runs of frames with no distance above a limit.
  private static func groups(_ frames: [Placed], apartBy distanceMs: Int64) -> [ArraySlice<Placed>] {
    var groups: [ArraySlice<Placed>] = []
    var start = 0
    for index in frames.indices
    where index + 1 == frames.count || frames[index + 1].frame.timeMs - frames[index].frame.timeMs > distanceMs {
      groups.append(frames[start...index])
      start = index + 1
    }
    return groups
  }

  /// A pause that is long for any recorder, in milliseconds: a week.
  private static let longPauseMs: Int64 = 7 * 86_400_000

  /// Warns of times ahead of this machine's clock, and of long pauses.
  private mutating func warnOfDoubtfulTimes(_ frames: [Placed], _ limits: Limits) {
    guard let first = frames.first?.frame, let last = frames.last?.frame else { return }
    let plausible = limits.plausible
    if last.timeMs >= plausible.upperBound, last.timeMs < limits.instants.upperBound {
      let ahead = frames.count { $0.frame.timeMs >= plausible.upperBound }
      warnings.append(
        "\(ahead) of \(frames.count) frames have times more than a day ahead of this machine's clock; the last is "
          + "\(last.source), on \(CivilTime.date(ofDay: last.timeMs.flooredDivision(by: 86_400_000))): check the "
          + "recorder's clock, and that the right digits are read")
    }
    guard last.timeMs - first.timeMs > Self.longPauseMs else { return }
    let pauses = zip(frames, frames.dropFirst()).map { (ms: $1.frame.timeMs - $0.frame.timeMs, before: $1.frame) }
      .filter { $0.ms > Self.longPauseMs }
    guard let longest = pauses.max(by: { $0.ms < $1.ms }) else { return }
    warnings.append(
      "\(count(pauses.count, "pause")) of more than \(Self.days(Self.longPauseMs)) between frames, the longest of "
        + "\(Self.days(longest.ms)) before \(longest.before.source): taken as a pause, not as a jump of the clock")
  }

  /// `7 days`; less than one day in milliseconds.
  private static func days(_ ms: Int64) -> String {
    ms < 86_400_000 ? "\(ms) ms" : count(Int(ms / 86_400_000), "day")
  }

  // MARK: - The recorder's order

  /// Notes the places where a frame is earlier than the one before it in the recorder's order.
  private mutating func noteSteps(in kept: inout [Placed]) {
    let order = kept.indices.sorted { kept[$0].place < kept[$1].place }
    var (steps, earlier) = (0, 0)
    var first: (step: Frame, before: Frame)?
    var latestMs = Int64.min
    for (index, previous) in zip(order.dropFirst(), order) {
      let (frame, before) = (kept[index].frame, kept[previous].frame)
      latestMs = max(latestMs, before.timeMs)
      if frame.timeMs < latestMs {
        earlier += 1
        kept[index].frame.stepsBack = true
      }
      guard frame.timeMs < before.timeMs else { continue }
      steps += 1
      first = first ?? (frame, before)
      guard steps <= Self.maximumNotes else { continue }
      let note = "comes after \(before.source), whose time is \(before.timeMs - frame.timeMs) ms later"
      kept[index].frame.note = [frame.note, note].compactMap { $0 }.joined(separator: "; ")
    }
    guard let (step, before) = first else { return }
    warnings.append(
      "the clock stepped back, or the list is out of order: \(earlier) of \(kept.count) frames come after a frame with a later time, "
        + "the first is \(step.source) (\(before.timeMs - step.timeMs) ms before \(before.source)); "
        + "they are shown in the order of their times; check the recorder's clock")
  }

  // MARK: - Equal instants

  private static func rank(_ kept: inout [Placed], _ ranked: ([Placed]) throws -> [Placed]) rethrows {
    var start = 0
    while start < kept.count {
      let timeMs = kept[start].frame.timeMs
      let end = kept[start...].firstIndex { $0.frame.timeMs != timeMs } ?? kept.count
      if end - start > 1 { kept.replaceSubrange(start..<end, with: try ranked(Array(kept[start..<end]))) }
      start = end
    }
  }

  /// Sorts the files of one instant: one with masks comes first, then the one in the shallowest folder, the larger picture, and the
  /// later one. The others of a file with masks become black: they may show the same screen, and have no masks of their own.
  private static func ranked(
    _ group: [Placed], isListed: Bool, in contents: any BatchContents
  ) throws -> [Placed] {
    let depths = group.map(\.frame.folderDepth)
    var pixels: [Int: Int] = [:]
    for (placed, depth) in zip(group, depths) where depths.count(where: { $0 == depth }) > 1 {
      pixels[placed.place] = try placed.frame.pixels(in: contents)
    }
    let isMasked = group.contains { $0.frame.look.hidesAnything }
    return group.sorted { one, other in
      let (hides, otherHides) = (one.frame.look.hidesAnything, other.frame.look.hidesAnything)
      guard hides == otherHides else { return hides }
      let (depth, otherDepth) = (one.frame.folderDepth, other.frame.folderDepth)
      guard depth == otherDepth else { return depth < otherDepth }
      let (size, otherSize) = (pixels[one.place] ?? 0, pixels[other.place] ?? 0)
      guard size == otherSize else { return size > otherSize }
      let (name, otherName) = (one.frame.fullName, other.frame.fullName)
      guard !isListed, name != otherName else { return one.place > other.place }
      return otherName.utf8.lexicographicallyPrecedes(name.utf8)
    }.map { placed in
      guard isMasked, !placed.frame.look.hidesAnything else { return placed }
      return Placed(place: placed.place, frame: placed.frame.hidden(because: "another file of its instant has masks"))
    }
  }

  private mutating func warnOfEqualInstants(isRecord: Bool, _ advice: String?) {
    var (instants, taken) = (0, 0)
    var hidden: [Frame] = []
    var index = 0
    while index < frames.count {
      let end = frames[index...].firstIndex { $0.timeMs != frames[index].timeMs } ?? frames.count
      instants += 1
      taken += end - index > 1 ? 1 : 0
      hidden += frames[(index + 1)..<end]
      index = end
    }
    guard let first = hidden.first, hidden.isMany(of: frames.count) else { return }
    let counts =
      "\(taken) of \(instants) instants have more than one \(isRecord ? "record" : "file"), so \(hidden.count) of "
      + "\(frames.count) are not shown, the first is \(first.fullName)"
    let folders = Dictionary(grouping: hidden.map(\.folder)) { $0 }.mapValues(\.count)
    let most = folders.max { ($0.value, $1.key) < ($1.value, $0.key) }
    if isRecord {
      warnings.append(counts + "; the last record of an instant is shown")
    } else if let most, !most.key.isEmpty, 2 * most.value > hidden.count {
      warnings.append(
        counts + "; \(most.value) of these lie in '\(most.key.shortened(to: 255))': "
          + "to leave that folder out, move it out of the batch")
    } else {
      warnings.append(counts + "; " + (advice ?? "to choose others, send the batch without the files that are shown"))
    }
  }
}

extension Frame {
  /// Returns the frame with its whole picture hidden.
  fileprivate func hidden(because reason: String) -> Frame {
    let look = FrameComposition(content: look.content, masks: .everything(because: reason))
    return Frame(source: source, paths: paths, timeMs: timeMs, look: look, note: note)
  }

  /// The number of folders around the frame's file; 0 for a record.
  package var folderDepth: Int { fullName.utf8.count { $0 == UInt8(ascii: "/") } }

  /// The folder of the frame's file; empty at the top level.
  fileprivate var folder: String {
    let name = fullName
    return name.lastIndex(of: "/").map { String(name[..<$0]) } ?? ""
  }

  /// Pixels along one side of the largest picture that is compared; larger ones are refused in any case.
  private static let largestSide = 1 << 24

  /// Returns the number of pixels in the picture. A file without a readable size counts as the largest: it is refused with its own
  /// reason, and then the next file is shown.
  fileprivate func pixels(in contents: any BatchContents) throws -> Int {
    let size: PixelSize?
    switch look.content {
    case .image(nil), .picture:
      size = try paths.first.flatMap(contents.pictureSize)
    case .image(let raw?): size = raw.size
    case .layers(_, let width, let height): size = PixelSize(width: width, height: height)
    }
    guard let size, size.width <= Self.largestSide, size.height <= Self.largestSide else { return .max }
    return size.width * size.height
  }
}
