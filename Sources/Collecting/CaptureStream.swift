// Decides which frames of a group become the next batch. Pure: the clock is passed in, capture times come with the frames.
//
// The newest frame waits until a later one comes: only then its hold is known, and only the last batch of a session can say that
// the session ends. Frames with the same capture time stay together, because names that tell no more than the second get their
// times from all frames of that second.
//
// The captures of a session go forward. A frame from before the session's last batch (a clock that was set back), or long after
// it, begins another session. So does the first frame of another day, or of other hours, if a clock ends the sessions.

import FrameBatches

/// The session that a group's batches continue.
struct CollectedSession: Equatable {
  let name: String
  /// The last capture in its batches.
  let lastMs: Int64
  let endMs: Int64
  let intervalMs: Int64
}

/// The next batch of a group.
struct BatchPlan {
  let group: CollectedGroup
  let session: String
  let frames: [CapturedFile]
  /// The next capture; nil if it is not known.
  let nextMs: Int64?
  let isFinal: Bool
  /// The nominal interval of the session so far.
  let intervalMs: Int64?
}

/// The frames of one group that no batch has yet.
struct CaptureStream {
  private let group: CollectedGroup
  private let rules: CollectRules
  private let naming: SessionNaming
  /// Captures farther apart do not belong to one session.
  private let breakMs: Int64
  private let isNamed: Bool
  /// By capture.
  private(set) var waiting: [CapturedFile] = []
  private(set) var session: CollectedSession?
  /// The monotonic times of the last arrival and of the last batch.
  private var arrivedMs: Int
  private var cutMs: Int

  /// - Parameter session: the one that an earlier run left open.
  init(
    _ group: CollectedGroup, _ rules: CollectRules, _ naming: SessionNaming, limits: Limits, session: CollectedSession?,
    nowMs: Int
  ) {
    self.group = group
    self.rules = rules
    self.naming = naming
    self.session = session.flatMap { naming.mayContinue($0, of: group.group) ? $0 : nil }
    isNamed = naming.isFixed(group.group)
    breakMs = isNamed ? limits.pauseMs : min(Int64(rules.idleMs), limits.pauseMs)
    (arrivedMs, cutMs) = (nowMs, nowMs)
  }

  mutating func add(_ file: CapturedFile, nowMs: Int) {
    if waiting.isEmpty { cutMs = nowMs }
    arrivedMs = nowMs
    let key = (file.timeMs, file.file.name)
    let index = waiting.lastIndex { ($0.timeMs, $0.file.name) < key }.map { $0 + 1 } ?? 0
    waiting.insert(file, at: index)
  }

  /// The monotonic time when the stream is to be asked again; nil if it waits for nothing.
  var dueMs: Int? {
    guard !waiting.isEmpty else { return nil }
    return waiting.count > heldCount ? min(cutMs + rules.everyMs, arrivedMs + rules.idleMs) : arrivedMs + rules.idleMs
  }

  /// The next batch that is due.
  ///
  /// - Parameter isStopping: whether all frames are due.
  mutating func next(nowMs: Int, isStopping: Bool = false) -> BatchPlan? {
    let isIdle = nowMs - arrivedMs >= rules.idleMs
    guard !waiting.isEmpty else {
      if isIdle && !isNamed { session = nil }
      return nil
    }
    let late = waiting.prefix { isLate($0) }.count
    if late == waiting.count || late == 0 && isFar(session?.lastMs, waiting[0].timeMs) { session = nil }
    let start = session == nil ? 0 : late
    for index in waiting.indices.dropFirst(start + 1) {
      let (before, after) = (waiting[index - 1].timeMs, waiting[index].timeMs)
      if naming.isOver(before, at: after) { return plan(start..<index, endsSession: true, isOver: true) }
      if isFar(before, after) { return plan(start..<index, endsSession: true) }
    }
    if start > 0 { return plan(start..<waiting.count, endsSession: true) }
    if isIdle || isStopping { return plan(waiting.indices, endsSession: isIdle, isIdle: isIdle) }
    let ready = waiting.count - heldCount
    guard ready > 0, ready >= CollectRules.batchFrames || nowMs - cutMs >= rules.everyMs else { return nil }
    return plan(0..<ready, endsSession: false)
  }

  /// Takes the frames of a batch out.
  mutating func commit(_ plan: BatchPlan, session: CollectedSession, nowMs: Int) {
    let taken = Set(plan.frames.map(\.file))
    waiting.removeAll { taken.contains($0.file) }
    self.session = plan.isFinal ? nil : session
    cutMs = nowMs
  }

  /// Takes a file out that has changed or is gone.
  mutating func drop(_ file: FolderFile) { waiting.removeAll { $0.file == file } }

  /// Takes all versions of a file out.
  mutating func drop(named name: String) { waiting.removeAll { $0.file.name == name } }

  /// The newest frame and all with its capture time.
  private var heldCount: Int { waiting.reversed().prefix { $0.timeMs == waiting.last?.timeMs }.count }

  /// Whether a frame overlaps the session's last batch. A small distance is a seam: see ``CollectedSession/intervalMs``.
  private func isLate(_ frame: CapturedFile) -> Bool {
    guard let session else { return false }
    if frame.timeMs <= session.lastMs { return true }
    return !naming.isOver(session.lastMs, at: frame.timeMs) && 2 * (session.endMs - frame.timeMs) >= session.intervalMs
  }

  private func isFar(_ before: Int64?, _ after: Int64) -> Bool { before.map { after - $0 > breakMs } ?? false }

  /// - Parameters:
  ///   - endsSession: whether no later frame continues the session.
  ///   - isOver: whether a clock has ended it.
  private func plan(
    _ range: Range<Int>, endsSession: Bool, isIdle: Bool = false, isOver: Bool = false
  ) -> BatchPlan {
    var end = min(range.lowerBound + CollectRules.batchFrames, range.upperBound)
    while end < range.upperBound, end - range.lowerBound < CollectRules.mostFrames,
      waiting[end].timeMs == waiting[end - 1].timeMs
    { end += 1 }
    let isLast = endsSession && end == range.upperBound
    let frames = Array(waiting[range.lowerBound..<end])
    let open = session.flatMap { naming.isOver($0.lastMs, at: frames[0].timeMs) ? nil : $0 }
    return BatchPlan(
      group: group, session: open?.name ?? naming.name(group.group, at: frames[0].timeMs), frames: frames,
      nextMs: isLast || end == waiting.count ? nil : waiting[end].timeMs,
      // A session with a given name goes on after a jump of the clock, and that of a folder after a pause.
      isFinal: isLast && (isOver || (isIdle ? naming.endsAfterPause : !isNamed)), intervalMs: session?.intervalMs)
  }
}
