// Batches that cannot be encoded, with their reasons. May be used beside workers.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

package struct Quarantine: Sendable {
  package static let reasonEnding = ".reason.json"

  /// A batch in quarantine.
  package struct Batch: Sendable {
    /// Its name in quarantine.
    package let name: String
    package let path: String
    /// The members of `NAME.reason.json`; nil if there is no such file, or another file of that name.
    package let reason: [String: JSONValue]?

    package func text(_ member: String) -> String? { reason?[member]?.string }

    /// The time of its quarantine, in unix milliseconds.
    package var timeMs: Int64? { reason?["timeMs"]?.integer }

    /// One line of JSON for a program.
    package var json: String {
      let reason = reason.map(JSONValue.object) ?? .null
      return JSONValue.object(["name": .string(name), "path": .string(path), "reason": reason]).line
    }
  }

  private let spool: Spool

  package init(of spool: Spool) { self.spool = spool }

  /// Moves a claimed batch here, byte for byte, with the reason beside it.
  ///
  /// - Returns: its name in quarantine.
  func add(_ claim: Claim, _ reason: BadBatch, worker: WorkerID) throws -> String {
    let name = try move(claim, reason, worker: worker, draft: claim.directory + ".reason")
    rmdir(claim.directory)
    return name
  }

  /// Moves a batch that waits here, byte for byte, with the reason beside it.
  ///
  /// - Returns: its name in quarantine.
  package func add(waiting name: String, _ reason: BadBatch) throws -> String {
    let worker = WorkerID()
    return try move(
      Claim(id: spool.incoming, name: name, attempt: 1, failures: 0), reason, worker: worker,
      draft: spool.temporary + "/\(worker).reason")
  }

  /// - Parameter temporary: the path of the reason while it is written.
  private func move(_ claim: Claim, _ reason: BadBatch, worker: WorkerID, draft temporary: String) throws -> String {
    let name = try DurableFile.firstFree(in: spool.quarantine, claim.name.shortened(to: SpoolQueue.nameBytes)) {
      (target) throws(DiskError) in
      if DurableFile.exists(target) { return false }
      // The reason comes first, because a batch in quarantine without one would be of no use. A reason that is there
      // belongs to another batch, or is from a worker that died here: then the batch gets another number.
      unlink(temporary)
      let command = acceptingCommand(lastComponent(of: target))
      try DurableFile.create(temporary, reason.report(for: claim, worker: worker, accepting: command))
      defer { unlink(temporary) }
      if reason.cause == BadBatch.denied, Self.mayRead(reason.file, of: claim) {
        throw DiskError("read", claim.path + "/" + reason.file, code: EACCES)
      }
      guard try DurableFile.link(temporary, to: target + Self.reasonEnding) else { return false }
      do throws(DiskError) {
        if try DurableFile.move(claim.path, to: target) { return true }
      } catch {
        // Each retry would leave another reason; and another worker may have taken the batch over.
        if !DurableFile.exists(target) { unlink(target + Self.reasonEnding) }
        throw error
      }
      unlink(target + Self.reasonEnding)
      return false
    }
    try Directory(opening: spool.quarantine).sync()
    return name
  }

  /// Whether an unreadable file is readable now: an unexported NFS directory refuses every file for a while.
  private static func mayRead(_ file: String, of claim: Claim) -> Bool {
    let path = file == claim.name ? claim.path : claim.path + "/" + file
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    if descriptor >= 0 { close(descriptor) }
    return descriptor >= 0
  }

  /// All batches, by name.
  package func batches() throws -> [Batch] {
    let names = try Directory.entries(ifAt: spool.quarantine).map(\.name)
    let all = Set(names)
    // A batch may be called like a reason file.
    return try names.filter { !$0.hasSuffix(Self.reasonEnding) || all.contains($0 + Self.reasonEnding) }.map(batch)
  }

  /// The reasons that a removal has left behind, with the former names of their batches.
  package func reasonsWithoutBatch() throws -> [(path: String, batch: String)] {
    let names = try Directory.entries(ifAt: spool.quarantine).map(\.name)
    let all = Set(names)
    return try names.filter {
      $0.hasSuffix(Self.reasonEnding) && !all.contains($0 + Self.reasonEnding)
        && !all.contains(String($0.dropLast(Self.reasonEnding.count)))
    }.compactMap { name in
      let path = spool.quarantine + "/" + name
      return try BadBatch.reason(at: path)?["batch"]?.string.map { (path, $0) }
    }
  }

  /// - Throws: ``Failure``.
  package func batch(_ name: String) throws -> Batch {
    let path = spool.quarantine + "/" + name
    guard !name.contains("/"), ![".", ".."].contains(name), try DurableFile.isThere(path) else {
      throw Failure.noBatch(name, in: spool.quarantine)
    }
    return Batch(name: name, path: path, reason: try BadBatch.reason(at: path + Self.reasonEnding))
  }

  // MARK: - Batches that are published as they are

  /// Whether an operator has accepted a batch of this mark. The mark is made of its content, so it holds wherever the batch is.
  func isAccepted(_ mark: String) throws(DiskError) -> Bool { try DurableFile.isThere(spool.accepted + "/" + mark) }

  func acceptingCommand(_ name: String) -> String {
    "encoder-worker quarantine retry --spool \(spool.path.shellWord) --accept -- \(name.shellWord)"
  }

  /// Lets workers publish a batch as it is, durably.
  private func accept(_ batch: Batch) throws {
    try DurableFile.makeDirectories(spool.accepted)
    for mark in try BadBatch.marks(in: batch.reason, of: batch.name) {
      let path = spool.accepted + "/" + mark
      if try !DurableFile.isThere(path) { try DurableFile.create(path, []) }
    }
    try Directory(opening: spool.accepted).sync()
  }

  /// Puts a batch back into the queue under its former name, as if no worker had ever claimed it.
  ///
  /// - Parameter isAccepted: whether workers publish it as it is, though most of its pictures are not shown.
  /// - Returns: that name.
  /// - Throws: ``Failure`` when another batch of that name waits: a new name could mean another session; ``Failure``.
  package func retry(_ batch: Batch, accepting isAccepted: Bool = false) throws -> String {
    if isAccepted { try accept(batch) }
    let former = batch.text("batch") ?? batch.name
    let name = former.contains("/") || !BatchDirectory.isComplete(former) || former.isEmpty ? batch.name : former
    guard try DurableFile.move(batch.path, to: spool.incoming + "/" + name) else {
      throw Failure.isTaken(name, in: spool.incoming)
    }
    try Directory(opening: spool.incoming).sync()
    try removeReason(of: batch)
    return name
  }

  /// Removes a batch and its reason.
  ///
  /// - Parameter reasonFirst: whether the batch is to be the rest after a crash, not the reason.
  package func purge(_ batch: Batch, reasonFirst: Bool) throws {
    if reasonFirst { try removeReason(of: batch) }
    let target = try spool.hide(batch.path)
    try removeReason(of: batch)
    try DurableFile.removeTree(target)
  }

  private func removeReason(of batch: Batch) throws {
    let path = batch.path + Self.reasonEnding
    try check("unlink", path) { unlink(path) == 0 || errno == ENOENT ? 0 : -1 }
    try Directory(opening: spool.quarantine).sync()
  }
}

extension BadBatch {
  /// Returns the marks that a reason tells.
  ///
  /// - Throws: ``Failure`` if there are none.
  static func marks(in reason: [String: JSONValue]?, of name: String) throws(Failure) -> [String] {
    let marks = (reason?["marks"]?.array ?? []).compactMap(\.string)
    // They become names of files.
    guard !marks.isEmpty, marks.allSatisfy({ $0.utf8.count == 64 && $0.allSatisfy(\.isHexDigit) }) else {
      throw Failure.notAcceptable(name)
    }
    return marks
  }

  private static let reasonFormat = "quarantine-reason/1"

  /// Reads a reason file; returns nil for any other file.
  static func reason(at path: String) throws(DiskError) -> [String: JSONValue]? {
    try DurableFile.contents(of: path, limit: 1 << 20).flatMap(reason(in:))
  }

  /// Reads the bytes of a reason; returns nil for any others.
  package static func reason(in bytes: [UInt8]) -> [String: JSONValue]? {
    guard let reason = try? JSONParser.parse(bytes).object, reason["format"]?.string == reasonFormat else { return nil }
    return reason
  }

  /// The bytes of `NAME.reason.json`.
  ///
  /// - Parameter command: publishes the batch as it is.
  func report(
    for claim: Claim, worker: WorkerID, accepting command: String, adding more: [String: JSONValue] = [:]
  ) -> [UInt8] {
    var more = more
    if !marks.isEmpty { more["marks"] = .array(marks.map { .string($0) }) }
    let advice = advice(accepting: command)
    let report = JSONValue.object([
      "format": .string(Self.reasonFormat), "batch": .string(claim.name), "operation": .string(operation),
      "file": .string(file), "cause": .string(cause), "advice": .string(advice), "attempt": .number(claim.attempt),
      "worker": .string(worker.description), "timeMs": .number(WallClock.nowMs),
    ])
    return report.setting(more).bytes(pretty: true) + [UInt8(ascii: "\n")]
  }
}

extension Failure {
  /// A named batch is not in quarantine.
  static func noBatch(_ name: String, in place: String) -> Failure {
    Failure(.usage, "no batch \(name) in \(place)", advice: "`quarantine list` names those that are there")
  }

  /// A batch cannot go back into the queue, because another batch of its name waits.
  static func isTaken(_ name: String, in place: String) -> Failure {
    Failure(.environment, "another batch \(name) waits in \(place)", advice: "try again when it is encoded")
  }

  /// Nothing of a batch can be published.
  static func notAcceptable(_ name: String) -> Failure {
    Failure(.input, "", name, "none of it can be published", advice: "mend its cause, and retry it without --accept")
  }
}
