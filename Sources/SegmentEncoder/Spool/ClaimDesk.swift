// One worker's hold on a spool: it takes batches out of `incoming/` and puts each where it belongs in the end. Every
// step is one rename to a name nobody else has, so it happened or it did not.

import Glibc
import Synchronization

/// A batch that this worker has taken.
public struct Claim: Sendable {
  /// The batch's name.
  public let name: String
  /// How often it has been taken; each worker that died with it counts.
  public let attempt: Int
  /// `claimed/<worker>/<number>.<attempt>`
  fileprivate let directory: String

  /// Where the batch lies now.
  public var path: String { directory + "/" + name }

  /// Whether the batch is still where it was put.
  public var isThere: Bool { DurableFile.exists(path) }

  /// Workers that may die with a batch before it is thought to be what kills them.
  private static let attempts = 3

  /// - Throws: ``BadBatch`` when too many workers have died with this batch.
  public func requireHarmless() throws(BadBatch) {
    guard attempt > Self.attempts else { return }
    throw BadBatch(
      "encode", name, "\(Self.attempts) workers died while they worked on it", advice: "report this with the batch")
  }
}

public final class ClaimDesk: Sendable {
  private let spool: Spool
  private let own: WorkerDirectory
  private let worker: WorkerID
  private let taken = Atomic<Int>(0)

  public init(_ spool: Spool, worker: WorkerID) throws(DiskError) {
    self.spool = spool
    self.worker = worker
    own = try WorkerDirectory(in: spool.claimed, worker: worker)
  }

  /// Takes a batch out of `incoming/`.
  ///
  /// - Returns: nil when somebody else was faster.
  public func claim(_ entry: Directory.Entry) throws(DiskError) -> Claim? {
    let raw = Array((spool.incoming + "/").utf8) + entry.bytes
    return try take(raw.map { CChar(bitPattern: $0) } + [0], name: entry.name, attempt: 1)
  }

  /// Takes over what dead workers of this host held.
  public func rescue() throws -> [Claim] {
    var claims: [Claim] = []
    try WorkerDirectory.takeOver(in: spool.claimed) { dead in
      guard DurableFile.isDirectory(dead) else { return }
      for held in try Directory(opening: dead).entries() where held.kind == .directory {
        let directory = dead + "/" + held.name
        let attempt = held.name.split(separator: ".").last.flatMap { Int($0) } ?? 1
        for batch in try Directory(opening: directory).entries() {
          let source = directory + "/" + batch.name
          if let claim = try take(cString(source), name: batch.name, attempt: attempt + 1) { claims.append(claim) }
        }
        rmdir(directory)
      }
    }
    try emptyTrash()
    return claims
  }

  /// Puts a batch back as if it had never been taken.
  public func handBack(_ claim: Claim) throws(DiskError) {
    // When a producer has used the name again meanwhile, the claim stays, and is taken over once this worker is gone.
    if try DurableFile.move(claim.path, to: spool.incoming + "/" + claim.name) { rmdir(claim.directory) }
  }

  /// The batch is published: it goes, or is kept in `done/`.
  public func retire(_ claim: Claim, keep: Bool) throws(DiskError) {
    if keep {
      try DurableFile.makeDirectories(spool.done)
      _ = try firstFree(in: spool.done, claim.name) { (target) throws(DiskError) in
        try DurableFile.move(claim.path, to: target)
      }
    } else {
      // First out of sight in one step: half a batch must never be taken for a batch.
      let target = spool.trash + "/\(worker)~\(taken.add(1, ordering: .relaxed).newValue)"
      try check("rename", target) { rename(claim.path, target) }
      try DurableFile.removeTree(target)
    }
    rmdir(claim.directory)
  }

  /// Keeps a batch that cannot be encoded, byte for byte, with the reason beside it.
  ///
  /// - Returns: its name in quarantine.
  @discardableResult
  public func quarantine(_ claim: Claim, _ reason: BadBatch) throws -> String {
    // Room for a suffix and `.reason.json` within the 255 bytes of a file name.
    let stem = claim.name.utf8.count <= 230 ? claim.name : String(claim.name.prefix(40)) + "~long"
    let name = try firstFree(in: spool.quarantine, stem) { (target) throws(DiskError) in
      if DurableFile.exists(target) { return false }
      // The reason comes first: a batch in quarantine without one would tell nobody anything. One without a batch was
      // left by a worker that died here, and is replaced.
      let text: [UInt8]
      do {
        text = try JSONText.encode(Reason(claim, reason, worker: worker), pretty: true)
      } catch {
        throw DiskError("encode", target, code: EINVAL)
      }
      try DurableFile.replace(
        target + ".reason.json", text, temporary: own.path + "/\(lastComponent(of: claim.directory)).reason")
      return try DurableFile.move(claim.path, to: target)
    }
    try Directory(opening: spool.quarantine).sync()
    rmdir(claim.directory)
    return name
  }

  /// Leaves the spool; nothing is claimed any more.
  public func leave() { own.remove() }

  private func take(_ source: [CChar], name: String, attempt: Int) throws(DiskError) -> Claim? {
    let claim = Claim(
      name: name, attempt: attempt,
      directory: own.path + "/\(taken.add(1, ordering: .relaxed).newValue).\(attempt)")
    try check("mkdir", claim.directory) { mkdir(claim.directory, 0o755) }
    if rename(source, claim.path) == 0 { return claim }
    let failure = DiskError("rename", claim.path)
    rmdir(claim.directory)
    if failure.code == ENOENT { return nil }
    throw failure
  }

  private func cString(_ text: String) -> [CChar] { text.utf8.map { CChar(bitPattern: $0) } + [0] }

  /// Tries NAME, NAME.2, NAME.3 … until one is free.
  private func firstFree(
    in directory: String, _ name: String, _ put: (String) throws(DiskError) -> Bool
  ) throws(DiskError) -> String {
    var candidate = name
    var number = 1
    while try !put(directory + "/" + candidate) {
      number += 1
      candidate = "\(name).\(number)"
    }
    return candidate
  }

  /// Removes what workers of this host that are gone were about to remove.
  private func emptyTrash() throws(DiskError) {
    for entry in try Directory(opening: spool.trash).entries()
    where WorkerID.isOnThisHost(entry.name) && !entry.name.hasPrefix("\(worker)~") {
      let owner = entry.name.split(separator: "~").prefix(3).joined(separator: "~")
      if WorkerID.isProcessGone(owner) { try DurableFile.removeTree(spool.trash + "/" + entry.name) }
    }
  }
}

/// `NAME.reason.json`: why a batch is in quarantine, for a person and for a program.
private struct Reason: Encodable {
  let format = "quarantine-reason/1"
  let batch: String
  let operation: String
  let file: String
  let cause: String
  let advice: String
  let attempt: Int
  let worker: String
  /// Unix milliseconds.
  let timeMs: Int64

  init(_ claim: Claim, _ reason: BadBatch, worker: WorkerID) {
    batch = claim.name
    operation = reason.operation
    file = reason.file
    cause = reason.cause
    advice = reason.advice
    attempt = claim.attempt
    self.worker = worker.description
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    timeMs = Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
  }
}
