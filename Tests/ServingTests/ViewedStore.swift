import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Serving
@testable import Sessions
@testable import Showing

/// An object store in memory that counts requests, lists 1 000 objects at once as S3 does, and fails as a test wants.
final class ViewedObjects: ObjectClient {
  struct Away: ClassifiedError {
    var kind: Failure.Kind { .environment }
    var description: String { "the store of the test is away" }
  }

  private struct State {
    var requests: [String] = []
    var isAway = false
    var lists: (@Sendable (String, String?) -> [ObjectInfo])?
    var before: (@Sendable (String) -> Void)?
    var modifiedMs: [String: Int64] = [:]
  }

  let objects: MemoryObjects
  private let state = Mutex(State())

  init(_ objects: MemoryObjects = MemoryObjects()) { self.objects = objects }

  /// Returns the requests since the last call, as `GET index/walk/head.json`.
  func requests() -> [String] {
    state.withLock { state in
      defer { state.requests = [] }
      return state.requests
    }
  }

  var isAway: Bool {
    get { state.withLock { $0.isAway } }
    set { state.withLock { $0.isAway = newValue } }
  }

  /// Replaces the answers to lists, by their prefix and the key behind which they begin.
  func list(_ body: (@Sendable (String, String?) -> [ObjectInfo])?) { state.withLock { $0.lists = body } }

  /// Sets a function that is called before each request, with it.
  func before(_ body: (@Sendable (String) -> Void)?) { state.withLock { $0.before = body } }

  func date(_ key: String, _ ms: Int64) { state.withLock { $0.modifiedMs[key] = ms } }

  private func begin(_ request: String) throws {
    state.withLock { $0.before }?(request)
    try state.withLock { state in
      state.requests.append(request)
      if state.isAway { throw Away() }
    }
  }

  func get(_ key: String, limit: Int) throws -> StoredObject? {
    try begin("GET \(key)")
    return try objects.get(key, limit: limit)
  }

  func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
    try begin("GET \(key)")
    return try objects.download(key, to: path, limit: limit)
  }

  func head(_ key: String) throws -> ObjectInfo? {
    try begin("HEAD \(key)")
    return try objects.head(key)
  }

  func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws -> ObjectTag? {
    try objects.put(key, body, kind, when: condition)
  }

  func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
    try objects.copy(key, tag, to: target)
  }

  func delete(_ key: String, _ tag: ObjectTag?) throws { try objects.delete(key, tag) }

  func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    try begin("LIST \(prefix)")
    let (lists, modifiedMs) = state.withLock { ($0.lists, $0.modifiedMs) }
    if let lists { return lists(prefix, key) }
    let keys = objects.keys.filter {
      $0.utf8.starts(with: prefix.utf8) && (key ?? "").utf8.lexicographicallyPrecedes($0.utf8)
    }
    return keys.prefix(1_000).map { key in
      let bytes = objects[key] ?? []
      return ObjectInfo(
        key: key, size: bytes.count, tag: ObjectTag(SHA256.hex(of: bytes)), modifiedMs: modifiedMs[key])
    }
  }
}

/// Sessions in a store and in a directory, and a server of either.
final class ViewedStore: Sendable {
  let scratch: ScratchDirectory
  let client: ViewedObjects
  private let clock = Mutex(1_000_000)

  init() throws {
    scratch = try ScratchDirectory()
    client = ViewedObjects()
  }

  var objects: MemoryObjects { client.objects }
  var output: String { scratch.path("output") }

  /// Lets time pass for the copies and the list.
  func pass(ms: Int) { clock.withLock { $0 += ms } }

  func object(store hls: Bool) throws -> ObjectStore {
    ObjectStore(
      objects, name: "s3://test/", staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()),
      .on([(.hls, hls)]))
  }

  /// Publishes batches in the store, and in the directory.
  func publish(_ batches: [String], hls: Bool = false) throws {
    let store = try object(store: hls)
    let staging = try Staging(output: output, worker: WorkerID())
    let views = hls ? SessionViews(.hls) : SessionViews()
    for batch in batches {
      _ = try BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache()).publish(batch)
      _ = try BatchEncoder(BatchEncoder.Options(), staging: staging, index: views).publish(batch)
    }
    #expect(store.flushPending(all: true).isEmpty && views.flushPending(staging, all: true).isEmpty)
    staging.remove()
  }

  /// Publishes a generated session.
  func generated(_ seed: Int = 7, hls: Bool = false) throws -> SessionID {
    let session = try GeneratedSession(seed: seed, in: scratch)
    try publish(session.batches, hls: hls)
    return try #require(SessionID(session.name))
  }

  /// Writes a batch of the session `walk` with a frame each second.
  func batch(_ seconds: Range<Int>, everySeconds step: Int = 1) throws -> String {
    let path = try scratch.directory("walk@\(UUID().uuidString)")
    for second in stride(from: seconds.lowerBound, to: seconds.upperBound, by: step) {
      try FileManager.default.copyItem(
        atPath: Fixture("gap").path + "/0000.jpg",
        toPath: "\(path)/\(LongSession.startMs + Int64(second) * 1_000).jpg")
    }
    return path
  }

  func stored(
    _ objects: (any ObjectClient)? = nil, maximumBytes: Int = 1 << 30, _ freeSpace: FreeSpace = FreeSpace()
  ) throws -> StoredOutput {
    try StoredOutput(
      StoredSessions(objects ?? client, name: "s3://test/"),
      in: Staging(scratch: scratch.path("copies"), worker: WorkerID()), maximumBytes: maximumBytes, freeSpace,
      clock: { [self] in clock.withLock { $0 } })
  }

  func routes(_ stored: StoredOutput) -> SessionRoutes {
    SessionRoutes(SessionCatalog(of: stored), scratch: scratch.path, version: "1")
  }

  func routesOfDirectory() throws -> SessionRoutes {
    SessionRoutes(try SessionCatalog(of: output), scratch: scratch.path, version: "1")
  }
}

extension SessionRoutes {
  /// Returns the answer to a request for an address, with its body.
  func get(_ address: String, isAbandoned: @escaping () -> Bool = { false }) -> (status: Int, bytes: [UInt8]) {
    let url = URLComponents(string: "http://localhost" + address)
    let arguments = url?.queryItems ?? []
    let reply = answer(
      HTTPRequest(
        method: "GET", path: url?.path ?? "", header: { _ in nil },
        argument: { name in arguments.first { $0.name == name }.map { $0.value ?? "" } }, isAbandoned: isAbandoned))
    switch reply.body {
    case .bytes(let bytes): return (reply.status, bytes)
    case .file(let file, let range):
      return (reply.status, FileBytes(file).bytes(at: range.lowerBound, range.count))
    }
  }

  func text(_ address: String) -> String { String(decoding: get(address).bytes, as: UTF8.self) }
}
