// The home of loose pictures: pictures that came one by one, and become batches. It puts each of them into one batch, and each batch
// into `incoming/` exactly once, whatever happens between two steps. Its directory has
//
//   journal    what it has done and is about to do
//   held/      pictures that no batch has, whose files may be gone: ``HeldPictures``
//   drafts/    batches that are being made
//
// The batches of all sessions that are due take each step together, so that many sessions cost hardly more syncs than one:
//
//   1. The drafts: the pictures and a batch.json in `drafts/NAME`, synced. NAME has a random number in it.
//   2. Lines in the journal, synced: NAME, the session, and name, inode, size and time of each file.
//   3. The drafts are renamed to `incoming/NAME`.
//   4. The files are removed, unless they are to be kept.
//   5. Second lines in the journal: the batches are done, and these files are still there.
//
// After a crash before step 2 a draft is not in the journal: it is removed, and the pictures are found again. After a later crash
// the steps go on with the third. If a draft is gone then, the batch was shown; a worker may already have it.

import FileSystem
import FrameBatches
import Glibc
import WorkQueues

package final class Batcher {
  /// An event while batches are made.
  package enum News: Sendable {
    /// A batch is in `incoming/`; `isRecovered` if an earlier run had begun it.
    case published(batch: String, session: String, pictures: Int, isFinal: Bool, isRecovered: Bool)
    /// A batch of a stream could not be made, because its files could not be read. It is tried again.
    case trouble(stream: String, DiskError)
    /// A file has another version than when it was given.
    case changed(FolderFile)
    /// A file is gone before it was read.
    case gone(FolderFile)
    /// A file cannot be read.
    case left(LeftFile)
  }

  /// Pictures that are published together.
  private static let pictures = 2_000
  /// Milliseconds until a stream whose files cannot be read is tried again, and the longest pause.
  private static let (pauseMs, longestPauseMs) = (2_000, 60_000)

  private let home: String
  private let spool: Spool
  private let source: any PictureSource
  private let rules: BatchRules
  private let timeZone: String?
  private let clock: () -> Int
  private let journal: BatchJournal
  package let held: HeldPictures
  private var streams: [String: PictureStream] = [:]
  /// The pauses of streams whose files could not be read.
  private var pauses: [String: (lengthMs: Int, untilMs: Int)] = [:]
  /// Drafts that may not be in the journal yet.
  private var begun: [(record: BatchRecord, unsynced: [String])] = []
  private var areSynced = false
  /// Held pictures that drafts have now.
  private var copies: [String] = []
  /// Batches of an earlier run.
  private var inherited: Set<String>

  /// Finishes what a dead process has begun, at the next ``cut(_:isReady:shouldContinue:report:)``.
  ///
  /// - Parameters:
  ///   - home: its directory, which is made if it is missing. The caller holds a lock, so that there is one batcher for it.
  ///   - remembers: the number of pictures that are known after their batch.
  ///   - timeZone: the one that the batches state.
  ///   - clock: the monotonic time in milliseconds.
  package init(
    _ home: String, into spool: Spool, from source: any PictureSource, _ rules: BatchRules, remembers: Int = 0,
    timeZone: String? = nil, limits: Limits, clock: @escaping () -> Int = MonotonicClock.milliseconds
  ) throws(DiskError) {
    (self.home, self.spool, self.source, self.rules) = (home, spool, source, rules)
    (self.timeZone, self.clock) = (timeZone, clock)
    try Self.moveEarlier(in: home)
    journal = try BatchJournal(home + "/journal", remembers: remembers)
    inherited = Set(journal.unfinished.map(\.batch))
    for entry in try Directory(opening: home + "/drafts").entries() where !inherited.contains(entry.name) {
      try DurableFile.removeTree(home + "/drafts/" + entry.name)
    }
    held = try HeldPictures(in: home, journal, limits: limits)
  }

  /// Makes the directories, and moves there what a version before them has left.
  private static func moveEarlier(in home: String) throws(DiskError) {
    for name in ["drafts", "held"] { try DurableFile.makeDirectories(home + "/" + name) }
    for entry in try Directory(opening: home).entries() where !["drafts", "held"].contains(entry.name) {
      if entry.kind == .directory {
        _ = try DurableFile.move(home + "/" + entry.name, to: home + "/drafts/" + entry.name)
      }
      if entry.name.hasPrefix("held-") {
        _ = try DurableFile.move(home + "/" + entry.name, to: home + "/held/" + entry.name)
      }
    }
  }

  // MARK: - Pictures

  /// Whether a batch has this file.
  package func isTaken(_ file: FolderFile) -> Bool { journal.taken[file.name] == file.stamp }

  /// Whether a batch has another version of this file.
  package func hasOtherVersion(of file: FolderFile) -> Bool {
    journal.taken[file.name].map { $0 != file.stamp } ?? false
  }

  /// The names of the last pictures in batches.
  package var recent: [String] { journal.recent }

  /// Gives a picture to its stream.
  ///
  /// - Parameters:
  ///   - names: the sessions of the stream; of the first picture.
  ///   - replacing: whether a waiting picture of the same file is another version that was replaced.
  /// - Throws: ``BadBatch`` for a session without a valid name.
  package func add(
    _ picture: LoosePicture, to key: String, _ names: any SessionNames, replacing: Bool = false
  ) throws(BadBatch) {
    let name = names.name(at: picture.timeMs)
    guard SessionID(name) != nil else {
      throw BadBatch(
        "read", picture.file.name, "the session id \"\(name)\" cannot be used", advice: SessionID.rule)
    }
    let nowMs = clock()
    // In its place: a copy of all that waits for each picture would be slow.
    if streams[key] == nil {
      streams[key] = PictureStream(key, rules, names, session: journal.sessions[key], nowMs: nowMs)
    }
    if replacing { streams[key]?.drop(named: picture.file.name) }
    streams[key]?.add(picture, nowMs: nowMs)
  }

  /// Pictures that no batch has yet.
  package var waiting: Int { streams.values.reduce(0) { $0 + $1.waiting.count } }

  /// The pictures that wait.
  package var waitingPictures: [LoosePicture] { streams.values.flatMap(\.waiting) }

  /// The number of streams.
  package var count: Int { streams.count }

  /// The monotonic time when a batch may be due; nil if nothing waits.
  package var dueMs: Int? {
    streams.values.compactMap { stream in stream.dueMs.map { max($0, pauses[stream.key]?.untilMs ?? 0) } }.min()
  }

  /// The session that the pictures of a stream go to, from a capture on.
  package func session(of stream: String, _ names: any SessionNames, at timeMs: Int64) -> String {
    streams[stream]?.sessionName(at: timeMs) ?? names.name(at: timeMs)
  }

  /// Whether a directory has pictures, or batches that are being made; for one that another process may have.
  package static func isOwing(_ home: String) throws(DiskError) -> Bool {
    let known: Set = ["held", "drafts", "journal"]
    if try Directory.entries(ifAt: home).contains(where: { !known.contains($0.name) }) { return true }
    for part in ["held", "drafts"] where try !Directory.entries(ifAt: home + "/" + part).isEmpty { return true }
    return false
  }

  // MARK: - Batches

  /// Which pictures become batches.
  package enum Cut: Sendable {
    /// Those that are due by the clock.
    case due
    /// All but the newest of each session: the process stops.
    case known
    /// All of a session, because it is to end.
    case session(String)
  }

  /// Makes the batches that are due, and publishes them. After a failure it is to be called again.
  ///
  /// - Parameters:
  ///   - isReady: whether all pictures of a stream that are there were given.
  ///   - report: gets the news.
  /// - Returns: whether all batches were made.
  @discardableResult
  package func cut(
    _ cut: Cut = .due, isReady: (String) -> Bool = { _ in true }, shouldContinue: () -> Bool = { true },
    report: (News) -> Void
  ) throws -> Bool {
    try finish(report)
    let nowMs = clock()
    var areAllMade = true
    for key in dueStreams(cut, nowMs).sorted() {
      guard isReady(key) else {
        areAllMade = false
        continue
      }
      while shouldContinue(), let plan = streams[key]?.next(nowMs: clock(), cut.urgency) {
        do {
          try prepare(plan, report)
          pauses[key] = nil
        } catch let error as DiskError where !error.path.hasPrefix(home) {
          report(.trouble(stream: key, error))
          pause(key, nowMs)
          areAllMade = false
          break
        }
        if begun.reduce(0, { $0 + $1.record.files.count }) >= Self.pictures { try finish(report) }
      }
    }
    try finish(report)
    return areAllMade && shouldContinue()
  }

  private func dueStreams(_ cut: Cut, _ nowMs: Int) -> [String] {
    switch cut {
    // A session may end without a picture.
    case .due:
      streams.values.filter { stream in
        pauses[stream.key].map { $0.untilMs <= nowMs } ?? true && (stream.dueMs ?? nowMs) <= nowMs
      }.map(\.key)
    case .known: Array(streams.keys)
    case .session(let name): streams.values.filter { $0.concerns(name) }.map(\.key)
    }
  }

  private func pause(_ key: String, _ nowMs: Int) {
    let lengthMs = pauses[key].map { min(2 * $0.lengthMs, Self.longestPauseMs) } ?? Self.pauseMs
    pauses[key] = (lengthMs, nowMs + lengthMs)
  }

  /// Writes the draft of a batch. Nothing has changed after a failure.
  private func prepare(_ plan: BatchPlan, _ report: (News) -> Void) throws {
    let draft = try BatchDraft(plan, in: home + "/drafts", held, source, rules, timeZone: timeZone)
    if let batch = draft.batch, let stream = streams[plan.stream] {
      let session = OpenSession(
        name: plan.session, lastMs: batch.frames[batch.frames.count - 1].timeMs, endMs: batch.endMs,
        intervalMs: batch.intervalMs, isOpen: batch.isEndOpen)
      let record = BatchRecord(
        batch: batch.name, stream: plan.stream, name: plan.session, session: stream.opened(by: session, after: plan),
        isFinal: plan.isFinal, files: draft.pictures.map(\.file))
      begun.append((record, draft.unsynced))
      copies += draft.pictures.compactMap(\.held)
      areSynced = false
      streams[plan.stream]?.commit(plan, session: session, nowMs: clock())
    }
    let taken = Set(draft.pictures.map(\.file))
    for picture in plan.pictures where !taken.contains(picture.file) { streams[plan.stream]?.drop(picture.file) }
    for file in draft.changed { report(.changed(file)) }
    for file in draft.gone { report(.gone(file)) }
    for file in draft.left { report(.left(file)) }
  }

  /// Does the steps after the drafts.
  private func finish(_ report: (News) -> Void) throws {
    if !begun.isEmpty {
      if !areSynced { try BatchDraft.sync(begun.map { ($0.record.batch, $0.unsynced) }, in: home + "/drafts") }
      areSynced = true
      try journal.append(begun.map { .batch($0.record) })
      begun = []
      held.remove(copies)
      copies = []
    }
    let records = journal.unfinished
    guard !records.isEmpty else { return }
    for record in records {
      let draft = home + "/drafts/" + record.batch
      if try DurableFile.isThere(draft), try !DurableFile.move(draft, to: spool.incoming + "/" + record.batch) {
        // The rename is done, but its other half was lost.
        try DurableFile.removeTree(draft)
      }
    }
    try Directory(opening: spool.incoming).sync()
    try Directory(opening: home + "/drafts").sync()
    let kept = try source.remove(records.map(\.files))
    try journal.append(zip(records, kept).map { .done($0.batch, kept: $1) })
    for record in records {
      report(
        .published(
          batch: record.batch, session: record.name, pictures: record.files.count, isFinal: record.isFinal,
          isRecovered: inherited.remove(record.batch) != nil))
    }
  }

  /// Writes the journal anew if it has grown, or may have files that are gone.
  package func compactIfLarge() throws { if journal.isLarge { try journal.compact(in: source.folder) } }
}

extension Batcher.Cut {
  fileprivate var urgency: PictureStream.Urgency {
    switch self {
    case .due: .byClock
    case .known: .known
    case .session: .all
    }
  }
}
