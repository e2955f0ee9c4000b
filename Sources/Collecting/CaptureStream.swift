// Decides which frames of a group become the next batch. Pure: the clock is passed in, capture times come with the frames.
//
// The newest frame waits until a later one comes: only then its hold is known, and only the last batch of a session can say that
// the session ends. Frames with the same capture time stay together, because names that tell no more than the second get their
// times from all frames of that second.
//
// The captures of a session go forward. A frame from before the session's last batch (a clock that was set back), or long after
// it, begins another session.

import FileSystem
import FrameBatches

/// The rules by which frames become batches.
package struct CollectRules: Sendable {
  /// Frames of a batch, as long as no more of them have the same capture time.
  static let batchFrames = 60
  /// Frames of a batch whatever their times are.
  static let mostFrames = 1_000

  /// Milliseconds between batches.
  package var everyMs = 5_000
  /// Milliseconds without a frame after which a session ends.
  package var idleMs = 60_000
  /// The session of all batches; nil for a new one after each pause.
  package var session: String?
  /// The beginning of new sessions' names.
  package var folder = "screenshots"
  package var keepsSources = false

  package init() {}

  /// Whether a session of an earlier run goes on: that run may have been given another name.
  func mayContinue(_ name: String, of group: CaptureGroup) -> Bool {
    if case .session = group { return true }
    return session.map { name == group.session($0) } ?? name.hasPrefix(folder + "-")
  }

  /// The beginning of session names for a folder: its name, with a dash for each character that a session may not have.
  package static func sessionBase(ofFolder path: String) -> String {
    let name = lastComponent(of: path).prefix(80).map { SessionID("x\($0)") == nil ? "-" : $0 }
    let base = path == "/" ? "" : String(name).drop { $0 == "." }
    return base.isEmpty ? "screenshots" : String(base)
  }
}

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
  let group: CaptureGroup
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
  private let group: CaptureGroup
  private let rules: CollectRules
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
  init(_ group: CaptureGroup, _ rules: CollectRules, limits: Limits, session: CollectedSession?, nowMs: Int) {
    self.group = group
    self.rules = rules
    self.session = session.flatMap { rules.mayContinue($0.name, of: group) ? $0 : nil }
    if case .session = group { isNamed = true } else { isNamed = rules.session != nil }
    breakMs = isNamed ? limits.jumpMs : min(Int64(rules.idleMs), limits.jumpMs)
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
    if session != nil && late > 0 { return plan(late..<waiting.count, endsSession: true) }
    if let index = waiting.indices.dropFirst().first(where: { isFar(waiting[$0 - 1].timeMs, waiting[$0].timeMs) }) {
      return plan(0..<index, endsSession: true)
    }
    if isIdle || isStopping { return plan(waiting.indices, endsSession: isIdle, isIdle: isIdle) }
    let ready = waiting.count - heldCount
    guard ready > 0, ready >= CollectRules.batchFrames || nowMs - cutMs >= rules.everyMs else { return nil }
    return plan(0..<ready, endsSession: false)
  }

  /// Takes the frames of a batch out.
  mutating func commit(_ plan: BatchPlan, session: CollectedSession, nowMs: Int) {
    let taken = Set(plan.frames.map(\.file.name))
    waiting.removeAll { taken.contains($0.file.name) }
    self.session = plan.isFinal ? nil : session
    cutMs = nowMs
  }

  /// Takes a file out that has changed or is gone.
  mutating func drop(_ name: String) { waiting.removeAll { $0.file.name == name } }

  /// The newest frame and all with its capture time.
  private var heldCount: Int { waiting.reversed().prefix { $0.timeMs == waiting.last?.timeMs }.count }

  /// Whether a frame overlaps the session's last batch. A small distance is a seam: see ``CollectedSession/intervalMs``.
  private func isLate(_ frame: CapturedFile) -> Bool {
    guard let session else { return false }
    return frame.timeMs <= session.lastMs || 2 * (session.endMs - frame.timeMs) >= session.intervalMs
  }

  private func isFar(_ before: Int64?, _ after: Int64) -> Bool { before.map { after - $0 > breakMs } ?? false }

  /// - Parameter endsSession: whether no later frame continues the session.
  private func plan(_ range: Range<Int>, endsSession: Bool, isIdle: Bool = false) -> BatchPlan {
    var end = min(range.lowerBound + CollectRules.batchFrames, range.upperBound)
    while end < range.upperBound, end - range.lowerBound < CollectRules.mostFrames,
      waiting[end].timeMs == waiting[end - 1].timeMs
    { end += 1 }
    let isLast = endsSession && end == range.upperBound
    let frames = Array(waiting[range.lowerBound..<end])
    let name = session?.name ?? group.session(rules.session ?? "\(rules.folder)-\(frames[0].timeMs)")
    return BatchPlan(
      group: group, session: name, frames: frames,
      nextMs: isLast || end == waiting.count ? nil : waiting[end].timeMs,
      // A session with a given name goes on after a jump of the clock.
      isFinal: isLast && (isIdle || !isNamed), intervalMs: session?.intervalMs)
  }
}
