// Batches that could not be encoded: why, and what is to become of them. May be used beside workers.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

package struct Quarantine: Sendable {
  static let reasonEnding = ".reason.json"

  /// A batch, and why it is here.
  package struct Batch: Sendable {
    /// Its name in quarantine.
    package let name: String
    package let path: String
    /// `NAME.reason.json`; nil where there is none, or nothing that one can read.
    package let reason: JSONValue?

    package init(name: String, path: String, reason: JSONValue?) {
      self.name = name
      self.path = path
      self.reason = reason
    }

    package func text(_ member: String) -> String? { reason?.object?[member]?.string }
    /// When it came here, in unix milliseconds.
    package var timeMs: Int64? { reason?.object?["timeMs"]?.integer }

    /// All of it, for a program: one line.
    package var json: String {
      JSONValue.object(["name": .string(name), "path": .string(path), "reason": reason ?? .null]).line
    }
  }

  private let spool: Spool

  package init(of spool: Spool) { self.spool = spool }

  /// All of them, by name.
  package func batches() throws -> [Batch] {
    guard try DurableFile.isDirectory(spool.quarantine) else { return [] }
    let names = try Directory(opening: spool.quarantine).entries().map(\.name)
    let all = Set(names)
    // A batch may be called like a reason.
    return try names.filter { !$0.hasSuffix(Self.reasonEnding) || all.contains($0 + Self.reasonEnding) }.map(batch)
  }

  /// - Throws: ``NoSuchBatch``.
  package func batch(_ name: String) throws -> Batch {
    let path = spool.quarantine + "/" + name
    guard !name.contains("/"), ![".", ".."].contains(name), try DurableFile.isThere(path) else {
      throw NoSuchBatch(name: name, place: spool.quarantine)
    }
    return Batch(
      name: name, path: path, reason: try BadBatch.reason(at: path + Self.reasonEnding).map { .object($0) })
  }

  /// Puts a batch back where it is owed, under the name that it had, as if it had never been taken.
  ///
  /// - Returns: that name.
  /// - Throws: ``NameTaken`` when another batch waits under it: which session it is can depend on the name.
  package func retry(_ batch: Batch) throws -> String {
    let said = batch.text("batch") ?? batch.name
    let name = said.contains("/") || !BatchDirectory.isComplete(said) || said.isEmpty ? batch.name : said
    guard try DurableFile.move(batch.path, to: spool.incoming + "/" + name) else {
      throw NameTaken(name: name, place: spool.incoming)
    }
    try Directory(opening: spool.incoming).sync()
    try forgetReason(of: batch)
    return name
  }

  /// Removes a batch and its reason, for good.
  package func purge(_ batch: Batch) throws {
    let target = try spool.hide(batch.path)
    try forgetReason(of: batch)
    try DurableFile.removeTree(target)
  }

  private func forgetReason(of batch: Batch) throws {
    let path = batch.path + Self.reasonEnding
    try check("unlink", path) { unlink(path) == 0 || errno == ENOENT ? 0 : -1 }
    try Directory(opening: spool.quarantine).sync()
  }
}

/// A named batch is not in quarantine.
package struct NoSuchBatch: Error, CustomStringConvertible {
  package let name: String
  package let place: String
  package var description: String { "no batch \(name) in \(place); `quarantine list` names those that are there" }
}

/// A batch cannot go back to where it came from.
package struct NameTaken: Error, CustomStringConvertible {
  package let name: String
  package let place: String
  package var description: String { "another batch \(name) waits in \(place); try again when it is encoded" }
}

extension BadBatch {
  private static let reasonFormat = "quarantine-reason/1"

  /// Reads a reason file of ours; nil for any other file.
  package static func reason(at path: String) throws(DiskError) -> [String: JSONValue]? {
    guard let bytes = try DurableFile.contents(of: path, limit: 1 << 20),
      let reason = try? JSONParser.parse(bytes).object, reason["format"]?.string == reasonFormat
    else { return nil }
    return reason
  }

  /// `NAME.reason.json`: why a batch is in quarantine, for a person and for a program.
  package func reason(for claim: Claim, worker: WorkerID) -> [UInt8] {
    let reason = JSONValue.object([
      "format": .string(Self.reasonFormat), "batch": .string(claim.name), "operation": .string(operation),
      "file": .string(file), "cause": .string(cause), "advice": .string(advice), "attempt": .number(claim.attempt),
      "worker": .string(worker.description),
      "timeMs": .number(WallClock.nowMs),
    ])
    return reason.bytes(pretty: true) + [UInt8(ascii: "\n")]
  }
}
