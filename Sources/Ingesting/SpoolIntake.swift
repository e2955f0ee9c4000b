// Takes batches into a spool. The steps, and a crash before each of them:
//
//   1. The body is in `tmp/`, synced. Before: the draft is removed by the next worker; the client has no answer, and repeats.
//   2. It is renamed to `incoming/NAME`, which nothing else has. Before: as 1.
//   3. `incoming/` is synced. Before: the batch may or may not be there; the client repeats, and the batch is recognised in `incoming/`,
//      or goes in again. A worker that has taken the first one finds the second one published, and changes nothing.
//   4. The receipt is appended and synced. Before: as 3, but the batch is there.
//   5. The answer 201. Before: the client repeats, and gets 200.
//
// 201 is sent after step 4, and 200 for a receipt only. So no answer stands for a batch that is not there.

import FileSystem
import FrameBatches
import Glibc
import WorkQueues

package struct SpoolIntake: BatchIntake {
  private let spool: Spool
  private let receipts: ReceiptLog

  package init(_ spool: Spool) throws(DiskError) {
    self.spool = spool
    receipts = try ReceiptLog(in: spool.receipts)
  }

  package var drafts: String { spool.temporary }

  package var keepsTracesInFiles: Bool { true }

  /// The file has its trace already.
  package func take(
    _ path: String, as name: DeliveredName, digest: String, traceParent: TraceParent? = nil
  ) throws -> IntakeOutcome {
    try receipts.withShard(of: name.receipt) { shard in
      if let known = shard.receipt(of: name.receipt) { return known.digest == digest ? .known : .conflict }
      guard try place(path, as: name.text, digest: digest) else { return .conflict }
      try Directory(opening: spool.incoming).sync()
      try shard.add(ReceiptLog.Entry(name: name.receipt, digest: digest, atMs: WallClock.nowMs))
      return .taken
    }
  }

  /// Moves a batch into `incoming/`; returns false if another batch has the name.
  private func place(_ path: String, as name: String, digest: String) throws -> Bool {
    let target = spool.incoming + "/" + name
    while try !DurableFile.move(path, to: target) {
      // From an earlier request without an answer, or from another producer.
      guard DurableFile.isFile(target) else {
        if DurableFile.exists(target) { return false }
        continue
      }
      do throws(any Error) {
        return try SHA256.hex(ofFile: target, cancellation: .never) == digest
      } catch let gone as DiskError where gone.code == ENOENT {
        // A worker has taken it.
      }
    }
    return true
  }

  package func receipt(of name: DeliveredName) throws -> ReceiptLog.Entry? {
    try receipts.receipt(of: name.receipt)
  }

  package func clockOffsetMs(of session: SessionID, near offsetMs: Int64) throws -> Int64 {
    // No batch has a slash in its name.
    let name = "clock/\(session)"
    return try receipts.withShard(of: name) { shard in
      let known = shard.receipt(of: name)
      let next = ClockOffset.next(after: known?.clockOffsetMs ?? 0, near: offsetMs)
      let isKept =
        known.map { $0.clockOffsetMs == next && $0.atMs > WallClock.nowMs - ClockOffset.keptMs } ?? (next == 0)
      if !isKept { try shard.add(ReceiptLog.Entry(name: name, clockOffsetMs: next, atMs: WallClock.nowMs)) }
      return next
    }
  }

  package func waitingCounts() throws -> (all: Int, byProducer: [String: Int]) {
    let waiting = try spool.waiting()
    let producers = waiting.compactMap { DeliveredName(reading: $0.name).producer.map { ($0, 1) } }
    return (waiting.count, Dictionary(producers, uniquingKeysWith: +))
  }

  package func sweep(_ number: Int) throws { try receipts.sweep(number) }
}
