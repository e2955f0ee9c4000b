// The files of uploads. `OUTPUT/.uploads/`: a lock, the state for people, and the deletions that the store does not know yet.
// `OUTPUT/SESSION/uploaded.json`: the parts of a session that the store has.

import FileSystem
import FrameBatches
import Glibc
import JSON

/// The record of the parts of a session that are in a store.
struct UploadRecord: Equatable {
  static let file = "uploaded.json"
  private static let format = "session-upload/1"
  private static let maximumBytes = 4 << 10

  /// The store's name.
  let store: String
  /// The parts of a session that change with each publication.
  let parts: Parts
  /// Unix milliseconds.
  let uploadedMs: Int64
  /// Whether its receiver knows that the session is there as a whole.
  var isAnnounced = false

  struct Parts: Equatable {
    /// The number of all segments, also of those that were removed here.
    let segments: Int
    /// The start of the last one, in unix milliseconds.
    let lastMs: Int64
    let hasEnded: Bool
    /// The bytes of the labels that came after their pictures.
    let labels: Int
  }

  var bytes: [UInt8] {
    var members: [String: JSONValue] = [
      "format": .string(Self.format), "store": .string(store), "segments": .number(parts.segments),
      "lastMs": .number(parts.lastMs), "ended": .bool(parts.hasEnded), "uploadedMs": .number(uploadedMs),
      "announced": .bool(isAnnounced),
    ]
    if parts.labels > 0 { members["labels"] = .number(parts.labels) }
    return JSONValue.object(members).bytes() + [UInt8(ascii: "\n")]
  }

  init(store: String, _ parts: Parts, uploadedMs: Int64) {
    (self.store, self.parts, self.uploadedMs) = (store, parts, uploadedMs)
  }

  private init(_ json: JSONValue) throws(JSONError) {
    guard try json.required("format", .string) == Self.format else { throw JSONError("format: another one") }
    store = try json.required("store", .string)
    parts = Parts(
      segments: Int(try json.count("segments")), lastMs: try json.count("lastMs"),
      hasEnded: try json.required("ended", .bool), labels: Int(try json.optional("labels", .integer) ?? 0))
    uploadedMs = try json.count("uploadedMs")
    isAnnounced = try json.required("announced", .bool)
  }

  /// Reads the record of a session.
  ///
  /// - Returns: nil for none, and for a file that is no record: another upload finds all there.
  static func read(_ directory: SessionDirectory) throws -> UploadRecord? {
    guard let bytes = try directory.bytes(of: file, limit: maximumBytes) else { return nil }
    return try? UploadRecord(JSONParser.parse(bytes))
  }
}

/// `OUTPUT/.uploads/`.
package struct UploadFiles: Sendable {
  private static let ending = ".json"

  private let path: String

  package init(output: String) { path = output + "/.uploads" }

  private var deletions: String { path + "/deletions" }

  private func file(of session: SessionID) -> String { deletions + "/" + session.description + Self.ending }

  /// Whether sessions of this output are uploaded.
  private var isUsed: Bool { get throws { try DurableFile.isDirectory(path) } }

  /// Locks the output: one process uploads its sessions.
  ///
  /// - Returns: nil if another process does.
  func lock() throws -> OpenFile? {
    try DurableFile.makeDirectories(deletions)
    let name = path + "/lock"
    let descriptor = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
    guard descriptor >= 0 else { throw DiskError("open", name) }
    guard let file = try OpenFile(owning: descriptor, path: name) else { throw DiskError("open", name, code: EINVAL) }
    if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      if errno == EWOULDBLOCK { return nil }
      let failure = DiskError("flock", name)
      guard failure.saysNoLocks else { throw failure }
    }
    return file
  }

  // MARK: - Deletions

  /// Asks for the deletion of a session in the store, too, if sessions are uploaded. Durable when this returns.
  package func addDeletion(of session: SessionID) throws {
    guard try isUsed else { return }
    try DurableFile.makeDirectories(deletions)
    if try !DurableFile.isThere(file(of: session)) { try DurableFile.create(file(of: session), []) }
    try Directory(opening: deletions).sync()
  }

  /// Removes a request for a deletion.
  package func removeDeletion(of session: SessionID) throws(DiskError) {
    let name = file(of: session)
    try check("unlink", name) { unlink(name) == 0 || [ENOENT, ENOTDIR].contains(errno) ? 0 : -1 }
  }

  func deletionRequests() throws(DiskError) -> [SessionID] {
    try Directory.entries(ifAt: deletions).filter { $0.name.hasSuffix(Self.ending) }
      .compactMap { SessionID(String($0.name.dropLast(Self.ending.count))) }
  }

  // MARK: - State

  private var state: String { path + "/state.json" }

  func write(_ state: UploadState, temporary: String) throws {
    let bytes = JSONValue.object(state.members).bytes() + [UInt8(ascii: "\n")]
    try DurableFile.replace(self.state, bytes, temporary: temporary)
  }

  /// Returns what the last pass has left; nil if sessions of this output are not uploaded.
  package func readState() throws -> UploadState? {
    guard let bytes = try DurableFile.contents(of: state, limit: 64 << 10) else { return nil }
    do {
      return try UploadState(JSONParser.parse(bytes))
    } catch {
      throw DamagedOutput(path: state, cause: "no state of uploads: \(error)")
    }
  }
}

/// The sessions and deletions that wait for the store, as the last pass has left them.
package struct UploadState: Sendable, Equatable {
  /// The store's name.
  package let store: String
  package internal(set) var sessions = 0
  /// The size of their videos.
  package internal(set) var bytes = 0
  /// Since when the oldest of them waits, in unix milliseconds; nil if none waits.
  package internal(set) var sinceMs: Int64?
  /// The deletions that the store does not know yet.
  package internal(set) var deletions = 0
  /// The last failure of the pass; nil for none.
  package internal(set) var failure: String?
  /// The time of the pass, in unix milliseconds.
  package internal(set) var atMs: Int64

  init(store: String, atMs: Int64) { (self.store, self.atMs) = (store, atMs) }

  init(_ json: JSONValue) throws(JSONError) {
    store = try json.required("store", .string)
    sessions = Int(try json.count("sessions"))
    bytes = Int(try json.count("bytes"))
    sinceMs = try json.optional("sinceMs", .integer)
    deletions = Int(try json.count("deletions"))
    failure = try json.optional("failure", .string)
    atMs = try json.count("atMs")
  }

  /// As JSON.
  package var members: [String: JSONValue] {
    [
      "store": .string(store), "sessions": .number(sessions), "bytes": .number(bytes),
      "sinceMs": sinceMs.map { .number($0) } ?? .null, "deletions": .number(deletions),
      "failure": failure.map { .string($0) } ?? .null, "atMs": .number(atMs),
    ]
  }

  mutating func wait(_ bytes: Int, sinceMs: Int64) {
    sessions += 1
    self.bytes += bytes
    self.sinceMs = min(self.sinceMs ?? sinceMs, sinceMs)
  }
}
