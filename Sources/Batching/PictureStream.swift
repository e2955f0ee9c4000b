// Decides which pictures of a stream become the next batch. Pure: the clock is passed in, capture times come with the pictures.
//
// The newest picture waits until a later one comes: only then its hold is known. Nothing else makes it part of a batch but the end of
// its session, or a pause: then it is held for an interval, and the batch says that its end is open. A stop or a crash is neither.
//
// Pictures with the same capture time stay together, because names that tell no more than the second get their times from all
// pictures of that second.
//
// A picture from before the end of the session's last batch is late. It gets a batch of its own: if something else was published for
// its time, only that picture is in conflict. If pictures keep coming late one after the other, a clock was set back: without a given
// name they begin another session. So does the first picture of another day, or of other hours, if a clock ends the sessions.

import FrameBatches

/// The rules by which pictures become batches.
package struct BatchRules: Sendable {
  /// Pictures of a batch, as long as no more of them have the same capture time, and their bytes.
  static let (batchPictures, batchBytes) = (60, 128 << 20)
  /// Pictures of a batch whatever their times are.
  static let mostPictures = 1_000
  /// Late pictures in a row by which a clock was set back.
  static let lateRow = 3

  /// Milliseconds between batches.
  package var everyMs = 5_000
  /// Milliseconds without a picture after which the newest one waits no longer.
  package var idleMs = 60_000
  /// Captures farther apart are in two batches, in milliseconds.
  package var pauseMs: Int64 = 86_400_000
  /// The nominal interval, if the user states it.
  package var intervalMs: Int64?

  package init() {}
}

/// The next batch of a stream.
struct BatchPlan {
  let stream: String
  let session: String
  let pictures: [LoosePicture]
  /// The next capture; nil if it is not known.
  let nextMs: Int64?
  let isFinal: Bool
  /// Whether the pictures come too late for the batch that has their time.
  let isLate: Bool
  /// The nominal interval of the session so far.
  let intervalMs: Int64?
}

/// The pictures of one stream that no batch has yet.
struct PictureStream {
  let key: String
  private let rules: BatchRules
  private let names: any SessionNames
  /// Captures farther apart do not belong to one session.
  private let breakMs: Int64
  /// By capture.
  private(set) var waiting: [LoosePicture] = []
  private(set) var session: OpenSession?
  /// The monotonic times of the last arrival, of the last one in order, and of the last batch.
  private var arrivedMs: Int
  private var orderedMs: Int
  private var cutMs: Int
  /// Late pictures that came one after the other since the last one in order, and the capture of the last of them.
  private var late = (count: 0, lastMs: Int64.min)

  /// - Parameter session: the one that an earlier run left open.
  init(_ key: String, _ rules: BatchRules, _ names: any SessionNames, session: OpenSession?, nowMs: Int) {
    (self.key, self.rules, self.names) = (key, rules, names)
    self.session = session.flatMap { names.mayContinue($0) ? $0 : nil }
    breakMs = names.areFixed ? rules.pauseMs : min(Int64(rules.idleMs), rules.pauseMs)
    (arrivedMs, orderedMs, cutMs) = (nowMs, nowMs, nowMs)
  }

  mutating func add(_ picture: LoosePicture, nowMs: Int) {
    if waiting.isEmpty { cutMs = nowMs }
    arrivedMs = nowMs
    if !isLate(picture.timeMs) {
      (orderedMs, late) = (nowMs, (0, .min))
    } else {
      late = (picture.timeMs >= late.lastMs ? late.count + 1 : 1, picture.timeMs)
    }
    let key = (picture.timeMs, picture.file.name)
    let index = waiting.lastIndex { ($0.timeMs, $0.file.name) < key }.map { $0 + 1 } ?? 0
    waiting.insert(picture, at: index)
  }

  /// The monotonic time when the stream is to be asked again; nil if it waits for nothing.
  var dueMs: Int? {
    guard let first = waiting.first else { return nil }
    let ready = waiting.count - heldCount
    if ready >= BatchRules.batchPictures { return arrivedMs }
    return ready > 0 || isLate(first.timeMs)
      ? min(cutMs + rules.everyMs, arrivedMs + rules.idleMs) : arrivedMs + rules.idleMs
  }

  /// Whether pictures of a session wait, or it goes on.
  func concerns(_ name: String) -> Bool {
    session?.name == name || waiting.contains { names.name(at: $0.timeMs) == name }
  }

  /// The session of a picture that continues the last batch, or is late.
  func sessionName(at timeMs: Int64) -> String {
    names.areFixed ? names.name(at: timeMs) : session?.name ?? names.name(at: timeMs)
  }

  /// The next batch that is due.
  ///
  /// - Parameter urgency: what may wait.
  mutating func next(nowMs: Int, _ urgency: Urgency = .byClock) -> BatchPlan? {
    let isIdle = nowMs - arrivedMs >= rules.idleMs
    guard !waiting.isEmpty else {
      if isIdle && !names.areFixed { session = nil }
      return nil
    }
    let isDue = urgency != .byClock || isIdle || nowMs - cutMs >= rules.everyMs
    let late = waiting.prefix { isLate($0.timeMs) }.count
    if late > 0 {
      let isFull = waiting.count - late > BatchRules.batchPictures
      switch isSetBack(nowMs, isIdle || urgency != .byClock) {
      case nil where !isFull: return nil
      case true?:
        if late < waiting.count { return plan(late..<waiting.count, endsSession: true) }
        session = nil
      case false? where !isDue && !isFull: return nil
      default: return planLate()
      }
    } else if isFar(session?.lastMs, waiting[0].timeMs), !isDecided(waiting[0].timeMs) {
      session = nil
    }
    for index in waiting.indices.dropFirst() {
      let (before, after) = (waiting[index - 1].timeMs, waiting[index].timeMs)
      if names.isOver(before, at: after) { return plan(0..<index, endsSession: true, isOver: true) }
      if isFar(before, after) { return plan(0..<index, endsSession: true) }
    }
    if isIdle || urgency == .all { return plan(waiting.indices, endsSession: isIdle, isIdle: isIdle) }
    let ready = waiting.count - heldCount
    guard ready > 0, ready >= BatchRules.batchPictures || isDue else { return nil }
    return plan(0..<ready, endsSession: false)
  }

  enum Urgency {
    /// A batch is due by the clock.
    case byClock
    /// All pictures but the newest are due: the process stops.
    case known
    /// All pictures are due: their session is to end.
    case all
  }

  /// Takes the pictures of a batch out.
  mutating func commit(_ plan: BatchPlan, session next: OpenSession, nowMs: Int) {
    let taken = Set(plan.pictures.map(\.file))
    waiting.removeAll { taken.contains($0.file) }
    session = opened(by: next, after: plan)
    if !plan.isLate { cutMs = nowMs }
  }

  /// Returns the session that goes on after a batch; nil if it was the last one of its session.
  func opened(by next: OpenSession, after plan: BatchPlan) -> OpenSession? {
    plan.isFinal && !names.areFixed ? nil : session?.continued(by: next) ?? next
  }

  /// Takes a picture out whose file has changed or is gone.
  mutating func drop(_ file: FolderFile) { waiting.removeAll { $0.file == file } }

  /// Takes all versions of a file out.
  mutating func drop(named name: String) { waiting.removeAll { $0.file.name == name } }

  /// The newest picture and all with its capture time.
  private var heldCount: Int { waiting.reversed().prefix { $0.timeMs == waiting.last?.timeMs }.count }

  /// Whether a capture comes too late for the session's last batch.
  private func isLate(_ timeMs: Int64) -> Bool {
    guard let session, session.covers(timeMs) else { return false }
    return timeMs <= session.lastMs || !names.isOver(session.lastMs, at: timeMs)
  }

  /// Whether a clock was set back, so that late pictures begin another session; nil if that is not known yet.
  private func isSetBack(_ nowMs: Int, _ isUrgent: Bool) -> Bool? {
    guard !names.areFixed, late.count > 0 else { return false }
    let windowMs = max(rules.everyMs, Int(clamping: 3 * (session?.intervalMs ?? 0)))
    guard isUrgent || nowMs - orderedMs >= windowMs else { return nil }
    return late.count >= BatchRules.lateRow
  }

  private func isFar(_ before: Int64?, _ after: Int64) -> Bool { before.map { after - $0 > breakMs } ?? false }

  /// Whether the last batch is held until this capture: it was part of the session then, whatever the rules were.
  private func isDecided(_ timeMs: Int64) -> Bool { session.map { !$0.isOpen && $0.endMs == timeMs } ?? false }

  /// Late pictures: one, or those with one capture time.
  private func planLate() -> BatchPlan {
    let timeMs = waiting[0].timeMs
    let same = waiting.prefix { $0.timeMs == timeMs }.prefix(BatchRules.mostPictures)
    let next = waiting.dropFirst(same.count).first?.timeMs
    return BatchPlan(
      stream: key, session: sessionName(at: timeMs), pictures: Array(same),
      nextMs: next.flatMap { isNear(timeMs, $0) ? $0 : nil },
      isFinal: false, isLate: true, intervalMs: session?.intervalMs)
  }

  /// Whether a late picture is on screen until the next one that waits: nothing else can be between them.
  private func isNear(_ timeMs: Int64, _ nextMs: Int64) -> Bool {
    nextMs - timeMs <= rules.intervalMs ?? session?.intervalMs ?? 0
  }

  /// - Parameters:
  ///   - endsSession: whether no later picture continues the session.
  ///   - isOver: whether a clock has ended it.
  private func plan(
    _ range: Range<Int>, endsSession: Bool, isIdle: Bool = false, isOver: Bool = false
  ) -> BatchPlan {
    var end = min(range.lowerBound + BatchRules.batchPictures, range.upperBound)
    var bytes = 0
    let fitting = waiting[range.lowerBound..<end].prefix { picture in
      bytes += Int(picture.file.stamp.size)
      return bytes <= BatchRules.batchBytes
    }
    // A batch states one correction of a clock.
    let offset = waiting[range.lowerBound].clockOffsetMs
    end = max(range.lowerBound + 1, fitting.prefix { $0.clockOffsetMs == offset }.endIndex)
    while end < range.upperBound, end - range.lowerBound < BatchRules.mostPictures,
      waiting[end].timeMs == waiting[end - 1].timeMs, waiting[end].clockOffsetMs == offset
    { end += 1 }
    let isLast = endsSession && end == range.upperBound
    let pictures = Array(waiting[range.lowerBound..<end])
    let open = session.flatMap { names.isOver($0.lastMs, at: pictures[0].timeMs) ? nil : $0 }
    return BatchPlan(
      stream: key, session: open?.name ?? names.name(at: pictures[0].timeMs), pictures: pictures,
      nextMs: isLast || end == waiting.count ? nil : waiting[end].timeMs,
      // A session with a given name goes on after a jump of the clock, and that of a folder after a pause.
      isFinal: isLast && (isOver || (isIdle ? names.endAtPause : !names.areFixed)), isLate: false,
      intervalMs: session?.intervalMs)
  }
}
