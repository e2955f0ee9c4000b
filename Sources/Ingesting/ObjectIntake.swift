// Takes batches into an object store and a queue of names. The receipt is an object `ingested/NAME`: with it begins a batch, and a second
// write of it says that the batch was taken. The steps, and a crash before each of them:
//
//   1. `ingested/NAME` is written, unless it is there, with the digest. Before: nothing has happened; the client repeats.
//   2. `incoming/NAME` is written, unless it is there. Before: the client repeats; another content of the name is refused for an hour.
//   3. The name is queued. Before: as 2, the object is compared; `reconcile` queues it, too.
//   4. The receipt is written again: taken. Before: as 3; a batch that a worker has finished meanwhile goes in again, and is recognised.
//   5. The answer 201. Before: the client repeats, and gets 200.

import FileSystem
import FrameBatches
import Glibc
import JSON
import Sessions
import WorkQueues

package struct ObjectIntake: BatchIntake {
  private static let receipts = "ingested/"
  /// Milliseconds after which a batch that was begun and not taken gives its name free.
  private static let begunMs: Int64 = 3_600_000

  private let batches: ObjectBatchRepository
  private let names: any NameQueue
  private let draftFolder: @Sendable () throws -> String

  package var drafts: String { get throws { try draftFolder() } }

  /// - Parameter drafts: returns a directory for bodies on their way, which it makes again if it is gone.
  package init(
    _ batches: ObjectBatchRepository, _ names: any NameQueue, drafts: @escaping @Sendable () throws -> String
  ) {
    (self.batches, self.names, draftFolder) = (batches, names, drafts)
  }

  private struct StoredReceipt {
    let receipt: ReceiptLog.Entry
    let isTaken: Bool
    let tag: ObjectTag
  }

  package var keepsTracesInFiles: Bool { false }

  package func take(
    _ path: String, as name: DeliveredName, digest: String, traceParent: TraceParent? = nil
  ) throws -> IntakeOutcome {
    guard let begun = try begin(name.receipt, digest) else { return .conflict }
    if begun.isTaken { return .known }
    guard try put(path, as: name.text, digest: digest) else {
      // Another producer has written the object.
      try batches.objects.delete(Self.receipts + name.receipt, begun.tag)
      return .conflict
    }
    _ = try names.add([name.text], traceParent: traceParent)
    // If that fails, a request with the same content was faster.
    _ = try write(name.receipt, digest, isTaken: true, when: .matching(begun.tag))
    return .taken
  }

  /// Writes the receipt of a batch that begins; returns the one that is there for the same content, or nil for other content.
  private func begin(_ name: String, _ digest: String) throws -> StoredReceipt? {
    var condition = PutCondition.absent
    while true {
      if let tag = try write(name, digest, isTaken: false, when: condition) {
        return StoredReceipt(
          receipt: ReceiptLog.Entry(name: name, digest: digest, atMs: WallClock.nowMs), isTaken: false, tag: tag)
      }
      guard let known = try stored(name) else {
        condition = .absent
        continue
      }
      if known.receipt.digest == digest { return known }
      guard !known.isTaken, known.receipt.atMs < WallClock.nowMs - Self.begunMs else { return nil }
      condition = .matching(known.tag)
    }
  }

  /// Writes the object of a batch; returns false if another batch has the name.
  private func put(_ path: String, as name: String, digest: String) throws -> Bool {
    let key = ObjectBatchRepository.incoming + name
    while try batches.objects.put(key, .file(path), .archive, when: .absent) == nil {
      let copy = path + ".there"
      defer { unlink(copy) }
      let limit = try DurableFile.size(of: path)
      do {
        // Nil if a worker has finished it meanwhile.
        guard try batches.objects.download(key, to: copy, limit: limit) != nil else { continue }
      } catch is ObjectTooLarge {
        return false
      }
      return try SHA256.hex(ofFile: copy, cancellation: .never) == digest
    }
    return true
  }

  private func write(
    _ name: String, _ digest: String, isTaken: Bool, when condition: PutCondition
  ) throws -> ObjectTag? {
    let text = JSONValue.object([
      "format": .string("ingest-receipt/1"), "batch": .string(name), "sha256": .string(digest),
      "atMs": .number(WallClock.nowMs), "taken": .bool(isTaken),
    ]).line
    return try batches.objects.put(Self.receipts + name, .bytes(Array((text + "\n").utf8)), .json, when: condition)
  }

  private func stored(_ name: String) throws -> StoredReceipt? {
    guard let object = try batches.objects.get(Self.receipts + name, limit: 1 << 16) else { return nil }
    let members = try? JSONParser.parse(object.bytes).object
    // An object that is none of ours is replaced.
    let receipt = ReceiptLog.Entry(
      name: name, digest: members?["sha256"]?.string ?? "", atMs: members?["atMs"]?.integer ?? 0)
    return StoredReceipt(receipt: receipt, isTaken: members?["taken"]?.bool ?? false, tag: object.tag)
  }

  package func receipt(of name: DeliveredName) throws -> ReceiptLog.Entry? {
    try stored(name.receipt).flatMap { $0.isTaken ? $0.receipt : nil }
  }

  package func clockOffsetMs(of session: SessionID, near offsetMs: Int64) throws -> Int64 {
    let key = Self.receipts + "clock/\(session)"
    while true {
      let object = try batches.objects.get(key, limit: 1 << 16)
      let members = object.flatMap { try? JSONParser.parse($0.bytes).object }
      let known = members?["clockOffsetMs"]?.integer ?? 0
      let next = ClockOffset.next(after: known, near: offsetMs)
      let isOld = members?["atMs"]?.integer ?? 0 < WallClock.nowMs - ClockOffset.keptMs
      if next == known, object == nil || !isOld { return next }
      let text = JSONValue.object(["clockOffsetMs": .number(next), "atMs": .number(WallClock.nowMs)]).line + "\n"
      let condition = object.map { PutCondition.matching($0.tag) } ?? .absent
      // Else another request was faster.
      if try batches.objects.put(key, .bytes(Array(text.utf8)), .json, when: condition) != nil { return next }
    }
  }

  /// A queue counts its names only.
  package func waitingCounts() throws -> (all: Int, byProducer: [String: Int]) { (try names.waitingCount(), [:]) }

  /// A rule of the bucket removes old receipts.
  package func sweep(_ number: Int) {}
}
