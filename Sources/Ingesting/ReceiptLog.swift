// The receipts of batches that were taken over HTTP: `ingested/<shard>`, a file of lines `<SHA-256> <unix ms> <name>`.
//
// A shard is locked (flock(2)) from the question whether a name is taken to the receipt: of two requests with one name, also of two
// workers, one comes after the other. A receipt is appended and synced when its batch is in `incoming/` for good. So a receipt always
// stands for a batch that was there; a crash before the receipt leaves at most a batch without one, whose client has no answer yet.
// A line without an end is a crash while it was written: it is cut off before the next line.

import FileSystem
import Glibc
import Synchronization

package struct ReceiptLog: Sendable {
  package struct Entry: Sendable, Equatable {
    package let name: String
    /// SHA-256 in hexadecimal digits.
    package let digest: String
    package let atMs: Int64

    package init(name: String, digest: String, atMs: Int64) {
      (self.name, self.digest, self.atMs) = (name, digest, atMs)
    }

    /// A line of the corrections of clocks has the correction in place of a digest.
    init(name: String, clockOffsetMs: Int64, atMs: Int64) {
      let digits = String(UInt64(bitPattern: clockOffsetMs), radix: 16)
      self.init(name: name, digest: String(repeating: "0", count: 64 - digits.count) + digits, atMs: atMs)
    }

    var clockOffsetMs: Int64 { UInt64(digest.suffix(16), radix: 16).map { Int64(bitPattern: $0) } ?? 0 }
  }

  /// Receipts are kept for this time, in milliseconds.
  package static let ageMs: Int64 = 7 * 86_400_000
  /// The files, and the lines of each before its oldest ones go: a million receipts.
  private static let (shards, maximumLines) = (1_024, 1_000)
  /// Milliseconds for which a request waits for a shard.
  private static let patienceMs = 10_000
  private static let maximumBytes = 16 << 20

  private let directory: String

  /// - Parameter directory: created if it is missing.
  package init(in directory: String) throws(DiskError) {
    self.directory = directory
    try DurableFile.makeDirectories(directory)
  }

  /// Returns the receipt of a name; nil if there is none.
  package func receipt(of name: String) throws -> Entry? { try withShard(of: name) { $0.receipt(of: name) } }

  /// Calls `body` with the receipts among which that of `name` is. No other request has one of these names meanwhile.
  ///
  /// - Throws: ``DiskError`` with `EWOULDBLOCK` if another process holds the shard for long.
  package func withShard<R>(of name: String, _ body: (Shard) throws -> R) throws -> R {
    let path = path(ofShard: Int(SHA256.hex(of: Array(name.utf8)).prefix(4), radix: 16) ?? 0)
    let untilMs = MonotonicClock.milliseconds() + Self.patienceMs
    while true {
      let shard = Shard(try LineFile(opening: path))
      if try shard.lock() { return try body(shard) }
      guard MonotonicClock.milliseconds() < untilMs else { throw DiskError("flock", path, code: EWOULDBLOCK) }
      usleep(2_000)
    }
  }

  /// The path of a shard: three hexadecimal digits.
  private func path(ofShard number: Int) -> String {
    directory + "/" + String(0x1000 + number % Self.shards, radix: 16).dropFirst()
  }

  /// A file of receipts, locked until the last reference goes.
  package final class Shard {
    private let file: LineFile
    private var receipts: [Entry] = []

    fileprivate init(_ file: LineFile) { self.file = file }

    /// Takes the lock and reads the receipts; returns false if another request has it.
    fileprivate func lock() throws(DiskError) -> Bool {
      guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else {
        if errno == EWOULDBLOCK || errno == EINTR { return false }
        throw DiskError("flock", file.path)
      }
      var (own, there) = (stat(), stat())
      try check("fstat", file.path) { fstat(file.descriptor, &own) }
      // The holder of the lock may have written the file anew.
      guard lstat(file.path, &there) == 0, own.st_ino == there.st_ino, own.st_dev == there.st_dev else { return false }
      receipts = try file.lines(limit: maximumBytes).compactMap(Self.receipt)
      return true
    }

    package func receipt(of name: String) -> Entry? { receipts.last { $0.name == name } }

    /// Appends a receipt. It is on the disk when this returns.
    package func add(_ receipt: Entry) throws(DiskError) {
      if receipts.count >= maximumLines { return try rewrite(receipts.suffix(maximumLines / 2) + [receipt]) }
      try file.append(Self.line(receipt))
      receipts.append(receipt)
    }

    /// Writes the file anew without the receipts from before an instant.
    fileprivate func forget(beforeMs: Int64) throws(DiskError) {
      let kept = receipts.filter { $0.atMs >= beforeMs }
      if kept.count < receipts.count { try rewrite(kept[...]) }
    }

    private func rewrite(_ kept: ArraySlice<Entry>) throws(DiskError) {
      try DurableFile.replace(file.path, kept.flatMap(Self.line), temporary: file.path + ".new")
      try Directory(opening: DurableFile.parentDirectory(of: file.path)).sync()
      receipts = Array(kept)
    }

    private static func line(_ receipt: Entry) -> [UInt8] {
      Array("\(receipt.digest) \(receipt.atMs) \(receipt.name)\n".utf8)
    }

    /// - Returns: nil for a line that is none.
    private static func receipt(_ line: ArraySlice<UInt8>) -> Entry? {
      let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
      guard parts.count == 3, parts[0].count == 64, let digest = String(validating: parts[0], as: UTF8.self),
        let atMs = String(validating: parts[1], as: UTF8.self).flatMap({ Int64($0) }),
        let name = String(validating: parts[2], as: UTF8.self)
      else { return nil }
      return Entry(name: name, digest: digest, atMs: atMs)
    }
  }

  /// Forgets the receipts that are older than ``ageMs``, a shard a call.
  ///
  /// - Parameter number: of the call.
  package func sweep(_ number: Int) throws {
    let path = path(ofShard: number)
    guard try DurableFile.isThere(path) else { return }
    let shard = Shard(try LineFile(opening: path))
    if try shard.lock() { try shard.forget(beforeMs: WallClock.nowMs - Self.ageMs) }
  }
}
