// The pictures of one session that came over HTTP one by one: a batcher in `ingest/SESSION/`, and which pictures are known.

import Batching
import FileSystem
import FrameBatches
import Glibc
import WorkQueues

/// Another process collects the pictures of the session.
struct SessionInUse: Error {}

final class PictureSession {
  struct Rules {
    var input = InputOptions()
    var limits = Limits()
    var batches = BatchRules()

    init(input: InputOptions = InputOptions(), limits: Limits = Limits()) {
      (self.input, self.limits) = (input, limits)
      (batches.idleMs, batches.pauseMs, batches.intervalMs) = (15_000, limits.pauseMs, input.intervalMs)
    }
  }

  let session: SessionID
  private let limits: Limits
  private let pictures: HandedOverPictures
  /// Digests by capture: of all that wait, and of the last in batches.
  private var digests: [Int64: String] = [:]
  private var arrivedMs = MonotonicClock.milliseconds()
  /// The newest capture, and the correction of its device's clock.
  private var (newestMs, clockOffsetMs): (Int64, Int64) = (.min, 0)

  /// Bytes of the pictures that no batch has.
  var waitingBytes: Int { batcher.waitingPictures.reduce(0) { $0 + Int($1.file.stamp.size) } }
  var isEmpty: Bool { batcher.waiting == 0 }
  var idleMs: Int { MonotonicClock.milliseconds() - arrivedMs }

  /// Opens the directory of a session; the first ``cut(_:)`` finishes what a dead process has begun.
  ///
  /// - Throws: ``SessionInUse``, ``DiskError``.
  init(_ session: SessionID, in spool: Spool, _ rules: Rules) throws {
    (self.session, limits) = (session, rules.limits)
    let pictures = try HandedOverPictures(
      of: session, in: spool, rules.batches, capture: rules.input.capture ?? .interval, limits: rules.limits)
    guard let pictures else { throw SessionInUse() }
    self.pictures = pictures
    remember()
  }

  private var batcher: Batcher { pictures.batcher }

  private func note(_ timeMs: Int64, _ digest: String, _ offset: Int64) {
    digests[timeMs] = digest
    if timeMs >= newestMs { (newestMs, clockOffsetMs) = (timeMs, offset) }
  }

  private func remember() {
    digests = [:]
    let names = batcher.recent.suffix(ReceivedPicture.remembered) + batcher.waitingPictures.map(\.file.name)
    for facts in names.compactMap(ReceivedPicture.Facts.init) {
      note(facts.timeMs, facts.digest, facts.clockOffsetMs)
    }
  }

  /// Takes a picture. It is durable when this returns.
  ///
  /// - Parameters:
  ///   - file: synced; it is moved.
  ///   - deviceMs: the capture by the clock of the device.
  ///   - aheadMs: how far this clock was ahead of that of the device, by the time when the request was sent; nil if it does not say. A
  ///     small difference changes no capture, and neither does a small one from the correction of the picture before: requests take
  ///     their time, and a repeated one has to have the same capture.
  ///   - kind: the ending of its name.
  func add(
    _ file: String, at deviceMs: Int64, aheadMs: Int64? = nil, kind: String, digest: String, bytes: Int
  ) throws -> (outcome: IntakeOutcome, timeMs: Int64) {
    let offset = aheadMs.map { ClockOffset.next(after: clockOffsetMs, near: $0) } ?? 0
    let timeMs = deviceMs + offset
    if let fault = limits.fault(ofInstant: timeMs) {
      throw ProblemDetails(.badRequest, fault, advice: "send t in unix milliseconds")
    }
    if let known = digests[timeMs] { return (known == digest ? .known : .conflict, timeMs) }
    let picture = ReceivedPicture(at: timeMs, digest, clockOffsetMs: offset, kind: kind, bytes: bytes)
    try batcher.held.take(file, picture)
    arrivedMs = MonotonicClock.milliseconds()
    note(timeMs, digest, offset)
    try pictures.give(picture)
    return (.taken, timeMs)
  }

  /// Makes the batches that are due. After a failure, open the session again: that takes back what was begun.
  ///
  /// - Returns: the names of the batches.
  func cut(_ which: Batcher.Cut = .due) throws -> [String] {
    var names: [String] = []
    try batcher.cut(which) { news in
      if case .published(let batch, _, _, _, _) = news { names.append(batch) }
    }
    try batcher.compactIfLarge()
    if digests.count > 4 * ReceivedPicture.remembered { remember() }
    return names
  }

  /// Removes the directory of a session without pictures. A repeated picture is new from then on.
  func remove() throws {
    guard isEmpty else { return }
    try DurableFile.removeTree(pictures.directory.path)
  }
}
