// Batches in an object store: waiting, finished, kept, or in quarantine. Each call may be repeated.

import FileSystem
import FrameBatches
import JSON
import Sessions

package struct ObjectBatchRepository: Sendable {
  package let objects: any ObjectClient
  private let name: String

  /// - Parameter name: the store's name in messages.
  package init(_ objects: any ObjectClient, name: String) {
    self.objects = objects
    self.name = name
  }

  package static let incoming = "incoming/"

  /// Whether an object below `incoming/` is complete. The naming rule of a spool holds for the last component.
  static func isBatch(_ name: String) -> Bool {
    !name.isEmpty && !name.hasSuffix("/") && BatchDirectory.isComplete(lastComponent(of: name))
  }

  func path(of batch: String) -> String { "\(name)\(Self.incoming)\(batch)" }

  /// Throws ``BadBatch`` unless the name is a plain path. Its last component names the batch in manifests.
  func requirePlain(_ batch: String) throws {
    guard isPlain(batch) else {
      throw BadBatch(
        "read", batch, "no name for a batch", advice: "name objects without //, . and .., with at most 800 bytes")
    }
  }

  package func isPlain(_ batch: String) -> Bool { Self.isPlain(batch) }

  static func isPlain(_ batch: String) -> Bool {
    // A key has at most 1 024 bytes: the rest is for the store's prefix and the other parts of a receipt's key.
    let parts = batch.split(separator: "/", omittingEmptySubsequences: false)
    return batch.utf8.count <= 800
      && parts.allSatisfy { !["", ".", ".."].contains($0) && $0.utf8.count <= 255 && !$0.utf8.contains(0) }
  }

  /// Returns the tag of a waiting batch; nil if there is none.
  func tag(of batch: String) throws -> ObjectTag? { try objects.head(Self.incoming + batch)?.tag }

  /// Downloads a batch; returns nil if there is none.
  func fetch(_ batch: String, to path: String, limit: Int) throws -> ObjectTag? {
    do {
      return try objects.download(Self.incoming + batch, to: path, limit: limit)
    } catch is ObjectTooLarge {
      throw BadBatch("read", batch, "more than the limit of \(limit) bytes", advice: "split the batch")
    }
  }

  /// The outcome of a batch.
  enum BatchOutcome {
    /// Published; or refused, because its sessions were deleted.
    case finished
    case quarantined(cause: String)
  }

  /// The outcome in a receipt.
  package enum ReceiptOutcome: String {
    case published, refused, quarantined
  }

  /// The outcome by the receipts of this name; nil if there is none.
  func outcome(of batch: String) throws -> BatchOutcome? {
    let receipts = try objects.list("receipts/\(batch)/", after: nil).compactMap { info in
      try objects.get(info.key, limit: 1 << 20).flatMap { try? JSONParser.parse($0.bytes).object }
    }
    // Receipts of `a/b` lie below those of `a`.
    let own = receipts.filter { $0["object"]?.string == batch }
    let outcomes = own.compactMap { $0["outcome"]?.string.flatMap(ReceiptOutcome.init) }
    if outcomes.contains(where: { $0 != .quarantined }) { return .finished }
    return own.first.map { .quarantined(cause: $0["cause"]?.string ?? "") }
  }

  /// Copies a batch to `done/`; replaces an earlier batch of that name.
  func keep(_ batch: String, _ tag: ObjectTag) throws {
    _ = try objects.copy(Self.incoming + batch, tag, to: "done/\(batch)")
  }

  /// Writes the receipt, then removes the batch.
  package func writeReceipt(
    _ batch: String, _ tag: ObjectTag, _ outcome: ReceiptOutcome, _ members: [String: JSONValue]
  ) throws {
    let own: [String: JSONValue] = [
      "format": .string("batch-receipt/1"), "object": .string(batch), "outcome": .string(outcome.rawValue),
      "tag": .string(tag.description),
    ]
    let text = JSONValue.object(members.merging(own) { $1 }).bytes() + [UInt8(ascii: "\n")]
    let stem = tag.description.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
    let key = "receipts/\(batch)/\(stem).json"
    while try objects.put(key, .bytes(text), .json, when: .absent) == nil {
      // A receipt that is there has the same outcome, is from before a retry of the batch, or is of another worker that has the batch.
      guard let there = try objects.get(key, limit: 1 << 20) else { continue }
      let known = try JSONParser.parse(there.bytes).object?["outcome"]?.string.flatMap(ReceiptOutcome.init)
      // A batch that was published stays so.
      if let known, known == outcome || outcome == .quarantined { break }
      if try objects.put(key, .bytes(text), .json, when: .matching(there.tag)) != nil { break }
    }
    try remove(batch, tag)
  }

  /// Removes a finished batch.
  func remove(_ batch: String, _ tag: ObjectTag) throws {
    // A producer may have written another batch under this name. Not every store knows the condition of `delete`.
    if try objects.head(Self.incoming + batch)?.tag == tag { try objects.delete(Self.incoming + batch, tag) }
  }

  /// Checks that the bytes that were read are still those of the batch: a proxy may have given a page of its own for them.
  ///
  /// - Throws: ``Failure``, also if a producer has written another batch under the name; then that one is tried.
  func requireUnchanged(_ claim: Claim) throws {
    guard isPlain(claim.name), let read = claim.tag, let there = try objects.head(Self.incoming + claim.name)?.tag,
      read != there
    else { return }
    throw Failure(
      .environment, "read", path(of: claim.name),
      "the tag of what was read is \(read), that of the object is \(there)",
      advice: "see that no proxy answers for the store; the batch is tried again")
  }

  /// Copies a batch to quarantine, with the reason beside it, and removes it from `incoming/`.
  ///
  /// - Returns: its name in quarantine; nil if another worker has published it meanwhile.
  func quarantine(_ claim: Claim, _ reason: BadBatch, worker: WorkerID) throws -> String? {
    let isPlain = isPlain(claim.name)
    // A batch called like a reason file gets another name, too.
    let stem =
      isPlain && !claim.name.hasSuffix(Quarantine.reasonEnding)
      ? claim.name : "batch-" + SHA256.hex(of: Array(claim.name.utf8))
    // The claim has no tag if the batch was too large to fetch.
    let tag = try isPlain ? claim.tag ?? objects.head(Self.incoming + claim.name)?.tag : nil
    let identity: [String: JSONValue] = [
      "object": .string(claim.name), "tag": tag.map { .string($0.description) } ?? .null,
    ]
    var name = stem
    var (number, isNew) = (1, false)
    while true {
      let bytes = reason.report(for: claim, worker: worker, accepting: acceptingCommand(name), adding: identity)
      let key = ObjectQuarantine.reasonKey(of: name)
      // Only this worker writes its ID with this time.
      if try objects.putOwn(key, bytes, .json, when: .absent) != nil {
        isNew = true
        break
      }
      // It belongs to another batch, or to this one: then a worker died after it wrote the reason.
      let there = try objects.get(key, limit: 1 << 20).flatMap { try? JSONParser.parse($0.bytes).object }
      if let there, identity.allSatisfy({ there[$0.key] == $0.value }) { break }
      number += 1
      name = "\(stem).\(number)"
    }
    // An object without a plain name is no batch: it stays.
    guard let tag else { return name }
    if try objects.copy(Self.incoming + claim.name, tag, to: ObjectQuarantine.key(of: name)) {
      try writeReceipt(claim.name, tag, .quarantined, ["quarantine": .string(name), "cause": .string("\(reason)")])
    } else if case .finished? = try outcome(of: claim.name) {
      // Two workers had it.
      if isNew { try objects.delete(ObjectQuarantine.reasonKey(of: name), nil) }
      return nil
    }
    return name
  }

  /// Whether an operator has accepted a batch of this mark.
  func isAccepted(_ mark: String) throws -> Bool { try objects.head("accepted/" + mark) != nil }

  func acceptingCommand(_ name: String) -> String {
    "encoder-worker quarantine retry --queue URL --store URL --accept -- \(name.shellWord), with the worker's queue and store"
  }

  /// The batches in quarantine.
  package var quarantined: ObjectQuarantine { ObjectQuarantine(objects, name: name) }

  /// Puts a batch back into `incoming/` and its name into a queue. After a crash it is to be called again.
  ///
  /// - Parameter isAccepted: whether workers publish it as it is, though most of its pictures are not shown.
  /// - Returns: its former name.
  /// - Throws: ``Failure``.
  package func retry(_ name: String, accepting isAccepted: Bool, in names: any NameQueue) throws -> String {
    let (key, reasonKey) = (ObjectQuarantine.key(of: name), ObjectQuarantine.reasonKey(of: name))
    guard isPlain(name), ObjectQuarantine.isBatch(name), let object = try objects.head(key) else {
      throw Failure.noBatch(name, in: self.name)
    }
    let reason = try objects.get(reasonKey, limit: 1 << 20).flatMap { BadBatch.reason(in: $0.bytes) }
    if isAccepted {
      for mark in try BadBatch.marks(in: reason, of: name) {
        _ = try objects.put("accepted/" + mark, .bytes([]), .json, when: .absent)
      }
    }
    let former = reason?["object"]?.string.flatMap { isPlain($0) ? $0 : nil } ?? name
    guard try objects.head(Self.incoming + former) == nil else {
      throw Failure.isTaken(former, in: self.name + Self.incoming)
    }
    guard try objects.copy(key, object.tag, to: Self.incoming + former) else {
      throw Failure.noBatch(name, in: self.name)
    }
    _ = try names.add([former])
    for key in [key, reasonKey] { try objects.delete(key, nil) }
    return former
  }

  /// The names of the batches that wait or are in work: each lies in `incoming/` until it is finished.
  package func owed(limit: Int) throws -> [String] {
    var (last, names): (String?, [String]) = (nil, [])
    while names.count < limit {
      let page = try objects.list(Self.incoming, after: last)
      guard let end = page.last else { break }
      last = end.key
      names += page.map { String($0.key.dropFirst(Self.incoming.count)) }
    }
    return Array(names.prefix(limit))
  }

  // MARK: - Reconciling

  /// The result of a scan of all batches.
  package struct ReconcileResult: Sendable, Equatable {
    /// Waiting batches.
    package var owed = 0
    /// The number of these that the queue did not have.
    package var queued = 0
    /// Objects whose keys are no names of batches; no worker takes them.
    package var misnamed = 0
    /// Whether nothing was queued, because the queue has names already and does not tell them.
    package var isQueueInUse = false

    package var json: String {
      JSONValue.object(["owed": .number(owed), "queued": .number(queued), "misnamed": .number(misnamed)]).line
    }
  }

  /// Queues the waiting batches that have no queue entry. A batch whose worker died between receipt and removal counts
  /// as waiting, too: the next worker finds it published, and removes it. A queue that does not recognise names gets them
  /// only while it is empty: else each run would add all of them once more.
  ///
  /// - Parameter progress: called after each page of the listing; an error that it throws ends the scan.
  package func reconcile(
    with names: any NameQueue, progress: (ReconcileResult) throws -> Void = { _ in }
  ) throws -> ReconcileResult {
    var result = ReconcileResult()
    result.isQueueInUse = try !names.recognisesNames && names.waitingCount() + names.heldElsewhereCount() > 0
    var last: String?
    while true {
      let page = try objects.list(Self.incoming, after: last)
      guard let end = page.last else { return result }
      last = end.key
      let all = page.map { String($0.key.dropFirst(Self.incoming.count)) }.filter { Self.isBatch($0) }
      let owed = all.filter(isPlain)
      result.owed += owed.count
      result.misnamed += all.count - owed.count
      result.queued += owed.isEmpty || result.isQueueInUse ? 0 : try names.add(owed)
      try progress(result)
    }
  }
}
