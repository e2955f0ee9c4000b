import FileSystem
import FrameBatches

/// The pictures of one session folder that become batches of its sessions: one after the other, and one for each monitor or camera
/// in their names.
final class SessionCollector {
  let folder: SessionFolder
  let naming: SessionNaming
  private let rules: CollectRules
  private let limits: Limits
  private var streams: [CaptureGroup: CaptureStream] = [:]
  /// The monotonic time when the next batch may be due; nil if nothing waits.
  private(set) var dueMs: Int?
  private var postponedMs = 0

  init(_ folder: SessionFolder, _ rules: CollectRules, limits: Limits) {
    (self.folder, self.rules, self.limits) = (folder, rules, limits)
    naming = SessionNaming(folder, rules)
  }

  /// Frames that no batch has yet.
  var waiting: Int { streams.values.reduce(0) { $0 + $1.waiting.count } }

  /// Gives a file to the stream of its group.
  ///
  /// - Parameters:
  ///   - areOfVersions: whether another version of the same name is another picture.
  ///   - session: the one that an earlier run left open, by its group.
  /// - Throws: ``BadBatch`` for a session without a valid name.
  func add(
    _ captured: CapturedFile, areOfVersions: Bool, nowMs: Int, session: (CollectedGroup) -> CollectedSession?
  ) throws {
    let group = naming.group(captured.group)
    let name = naming.name(group, at: captured.timeMs)
    guard SessionID(name) != nil else {
      throw BadBatch(
        "read", captured.file.name, "the session id \"\(name)\" cannot be used", advice: SessionID.rule)
    }
    let key = CollectedGroup(folder, group)
    var stream =
      streams[group] ?? CaptureStream(key, rules, naming, limits: limits, session: session(key), nowMs: nowMs)
    // A file that was replaced before it was taken.
    if !areOfVersions { stream.drop(named: captured.file.name) }
    stream.add(captured, nowMs: nowMs)
    streams[group] = stream
    updateDueTime()
  }

  /// Returns the next batch that is due.
  func next(nowMs: Int, isStopping: Bool) -> BatchPlan? {
    for group in streams.keys.sorted(by: { $0.text < $1.text }) {
      if let plan = streams[group]?.next(nowMs: nowMs, isStopping: isStopping) { return plan }
    }
    updateDueTime()
    return nil
  }

  /// Takes the frames of a draft out.
  func commit(_ plan: BatchPlan, _ draft: CollectDraft, nowMs: Int) {
    let group = plan.group.group
    if let record = draft.record { streams[group]?.commit(plan, session: record.session, nowMs: nowMs) }
    for file in draft.changed + draft.gone { streams[group]?.drop(file) }
    for file in plan.frames where draft.left.contains(where: { $0.name == file.file.name }) {
      streams[group]?.drop(file.file)
    }
    updateDueTime()
  }

  /// Lets the next batch wait.
  func postpone(untilMs: Int) {
    postponedMs = untilMs
    updateDueTime()
  }

  private func updateDueTime() { dueMs = streams.values.compactMap(\.dueMs).min().map { max($0, postponedMs) } }
}
