// Batches in an object store: fetched, finished, kept, or in quarantine. Each step may be done again.

import FileSystem
import FrameBatches
import JSON
import Sessions

package struct ObjectBatchRepository: Sendable {
  private let objects: any ObjectClient
  private let name: String

  /// - Parameter name: what the store is called in messages.
  package init(_ objects: any ObjectClient, name: String) {
    self.objects = objects
    self.name = name
  }

  private static let incoming = "incoming/"

  package func path(of batch: String) -> String { "\(name)\(Self.incoming)\(batch)" }

  /// A name that is a path of its own: what comes after its last slash is the batch's name for its session and manifests.
  func requirePlain(_ batch: String) throws {
    guard Self.isPlain(batch) else {
      throw BadBatch(
        "read", batch, "no name for a batch", advice: "name objects without //, . and .., with at most 800 bytes")
    }
  }

  private static func isPlain(_ batch: String) -> Bool {
    // Room for what a receipt's key has beside it, and the store's prefix.
    let parts = batch.split(separator: "/", omittingEmptySubsequences: false)
    return batch.utf8.count <= 800
      && parts.allSatisfy { !["", ".", ".."].contains($0) && $0.utf8.count <= 255 && !$0.utf8.contains(0) }
  }

  /// - Returns: nil where there is none.
  package func fetch(_ batch: String, to path: String, limit: Int) throws -> ObjectTag? {
    do {
      return try objects.download(Self.incoming + batch, to: path, limit: limit)
    } catch is ObjectTooLarge {
      throw BadBatch("read", batch, "more than the limit of \(limit) bytes", advice: "split the batch")
    }
  }

  /// The outcome of a batch.
  enum BatchOutcome {
    case published
    case quarantined(cause: String)
  }

  /// The receipt of a batch of this name; nil if there is none.
  func outcome(of batch: String) throws -> BatchOutcome? {
    let receipts = try objects.list("receipts/\(batch)/", after: nil).compactMap { info in
      try objects.get(info.key, limit: 1 << 20).flatMap { try? JSONParser.parse($0.bytes).object }
    }
    // Below its name lie those of others, too.
    let own = receipts.filter { $0["object"]?.string == batch }
    if own.contains(where: { $0["outcome"]?.string == "published" }) { return .published }
    return own.first.map { .quarantined(cause: $0["cause"]?.string ?? "") }
  }

  /// A copy that stays; of batches of one name, the last.
  package func keep(_ batch: String, _ tag: ObjectTag) throws {
    _ = try objects.copy(Self.incoming + batch, tag, to: "done/\(batch)")
  }

  /// Writes the receipt, then removes the batch.
  package func writeReceipt(_ batch: String, _ tag: ObjectTag, _ outcome: String, _ members: [String: JSONValue]) throws
  {
    let own: [String: JSONValue] = [
      "format": .string("batch-receipt/1"), "object": .string(batch), "outcome": .string(outcome),
      "tag": .string(tag.description),
    ]
    let text = JSONValue.object(members.merging(own) { $1 }).bytes() + [UInt8(ascii: "\n")]
    let key = Self.receipt(batch, tag)
    while try objects.put(key, .bytes(text), .json, when: .absent) == nil {
      // One that is there says as much, or was true before the batch was tried again.
      guard let there = try objects.get(key, limit: 1 << 20) else { continue }
      if try JSONParser.parse(there.bytes).object?["outcome"]?.string == outcome { break }
      if try objects.put(key, .bytes(text), .json, when: .matching(there.tag)) != nil { break }
    }
    try remove(batch, tag)
  }

  /// Unless a producer has written another batch under its name: asked for first, since not every store knows the condition.
  private func remove(_ batch: String, _ tag: ObjectTag) throws {
    if try objects.head(Self.incoming + batch)?.tag == tag { try objects.delete(Self.incoming + batch, tag) }
  }

  private static func receipt(_ batch: String, _ tag: ObjectTag) -> String {
    "receipts/\(batch)/\(tag.description.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }).json"
  }

  /// - Returns: its name in quarantine.
  package func quarantine(_ claim: Claim, _ tag: ObjectTag?, _ reason: BadBatch, worker: WorkerID) throws -> String {
    let isPlain = Self.isPlain(claim.name)
    // Nor is one that would be taken for a reason.
    let stem =
      isPlain && !claim.name.hasSuffix(Quarantine.reasonEnding)
      ? claim.name : "batch-" + SHA256.hex(of: Array(claim.name.utf8))
    let identity: [String: JSONValue] = [
      "object": .string(claim.name), "tag": tag.map { .string($0.description) } ?? .null,
    ]
    let text = try JSONParser.parse(reason.reason(for: claim, worker: worker)).setting(identity)
    let bytes = text.bytes(pretty: true) + [UInt8(ascii: "\n")]
    var name = stem
    var number = 1
    while true {
      let key = "quarantine/\(name)\(Quarantine.reasonEnding)"
      if try objects.put(key, .bytes(bytes), .json, when: .absent) != nil { break }
      // Ours, from before we died, or another batch's.
      let there = try objects.get(key, limit: 1 << 20).flatMap { try? JSONParser.parse($0.bytes).object }
      if let there, identity.allSatisfy({ there[$0.key] == $0.value }) { break }
      number += 1
      name = "\(stem).\(number)"
    }
    // Not fetched, when there is none, or it is too large. Objects with other names belong to others.
    if isPlain, let tag = try tag ?? objects.head(Self.incoming + claim.name)?.tag {
      _ = try objects.copy(Self.incoming + claim.name, tag, to: "quarantine/\(name)")
      try writeReceipt(claim.name, tag, "quarantined", ["quarantine": .string(name), "cause": .string("\(reason)")])
    }
    return name
  }

  /// Puts frames into the store as one batch, and its name into a queue.
  ///
  /// - Parameters:
  ///   - paths: image files named by their captures, or one directory with them and perhaps a `batch.json`.
  ///   - session: nil for a new session, or for the one that `batch.json` names.
  /// - Returns: the batch's name.
  package func enqueue(
    _ paths: [String], session: String?, limits: Limits = Limits(), in names: any NameQueue
  ) throws -> String {
    let (stem, files) = try Enqueuer.gather(paths, session: session, limits)
    let bytes = try Archive.tar(
      try files.map { (lastComponent(of: $0), try Enqueuer.bytes(of: $0, limits)) }.sorted { $0.0 < $1.0 })
    var name = "\(stem).tar"
    var number = 1
    while try objects.put(Self.incoming + name, .bytes(bytes), .archive, when: .absent) == nil {
      // This very batch, perhaps by a write whose answer got lost.
      let isSame = try objects.head(Self.incoming + name)?.size == bytes.count
      if isSame, try objects.get(Self.incoming + name, limit: bytes.count)?.bytes == bytes { break }
      number += 1
      name = "\(stem).\(number).tar"
    }
    _ = try names.add([name])
    return name
  }

  // MARK: - What is owed

  /// The result of a scan of all batches.
  package struct ReconcileResult: Sendable, Equatable {
    /// Batches that are owed.
    package var owed = 0
    /// Of these, the ones that the queue did not know.
    package var queued = 0
    /// Objects whose keys are no names of batches; no worker takes them.
    package var misnamed = 0

    package var json: String {
      JSONValue.object(["owed": .number(owed), "queued": .number(queued), "misnamed": .number(misnamed)]).line
    }
  }

  /// Sees to it that every batch that is owed is in the queue. One whose worker died between receipt and removal counts as owed,
  /// too: who works on it finds it done, and removes it.
  ///
  /// - Parameter progress: called now and then; what it throws ends the work.
  package func reconcile(
    with names: any NameQueue, progress: (ReconcileResult) throws -> Void = { _ in }
  ) throws -> ReconcileResult {
    var result = ReconcileResult()
    var last: String?
    while true {
      let page = try objects.list(Self.incoming, after: last)
      guard let end = page.last else { return result }
      last = end.key
      let all = page.map(\.key).filter(Self.isComplete).map { String($0.dropFirst(Self.incoming.count)) }
      let owed = all.filter(Self.isPlain)
      result.owed += owed.count
      result.misnamed += all.count - owed.count
      result.queued += owed.isEmpty ? 0 : try names.add(owed)
      try progress(result)
    }
  }

  /// Names as in a spool: what begins with a dot, or ends in `.tmp` or `.part`, is not there yet.
  private static func isComplete(_ key: String) -> Bool {
    let name = lastComponent(of: key)
    return !key.hasSuffix("/") && BatchDirectory.isComplete(name)
  }
}
