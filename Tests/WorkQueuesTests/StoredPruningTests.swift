import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions
@testable import WorkQueues

/// Removal by age in an object store.
@Suite struct StoredPruningTests {
  private static let (dayS, dayMs) = (86_400, Int64(86_400_000))
  private static let reason = Array(#"{"format":"quarantine-reason/1","worker":"x"}"#.utf8)

  private let package: GrowingPackage

  init() throws { package = try GrowingPackage() }

  private var objects: MemoryObjects { package.objects }

  private func put(_ key: String, _ bytes: [UInt8] = [1, 2, 3], days: Int = 2) {
    objects[key] = bytes
    objects.age(key, seconds: days * Self.dayS)
  }

  private func prune(
    kept: Int64? = dayMs, quarantined: Int64? = dayMs, _ client: (any ObjectClient)? = nil, isDryRun: Bool = false
  ) throws -> Pruning.Result {
    var retention = Retention(nowMs: WallClock.nowMs)
    (retention.keptMs, retention.quarantinedMs, retention.sessionsMs) = (kept, quarantined, Self.dayMs)
    let staging = try Staging(scratch: package.scratch.path("own"), worker: WorkerID())
    defer { staging.remove() }
    return StoredPruning(
      client ?? objects, name: "s3://test/", staging: staging, retention: retention, isDryRun: isDryRun
    ).run()
  }

  @Test func oldBatchesGoWithTheirReasons() throws {
    let young = ["done/new", "quarantine/new", "quarantine/new.reason.json", "accepted/new"]
    let other = ["incoming/old", "receipts/old/1.json", "ingested/old", "notifications/old.json"]
    for key in young { put(key, Self.reason, days: 0) }
    for key in other { put(key, days: 100) }
    put("done/old")
    put("done/folder/old", [1])
    put("quarantine/bad", [1, 2, 3, 4])
    // A name between a batch and its reason.
    put("quarantine/bad.a", [1], days: 0)
    put("quarantine/bad.reason.json", Self.reason)
    put("quarantine/gone.reason.json", Self.reason)
    put("quarantine/stranger.reason.json", [1])
    put("quarantine/late", days: 0)
    put("quarantine/late.reason.json", Self.reason)
    put("accepted/mark", [])
    let wanted = [
      "done/folder/old", "done/old", "quarantine/bad", "quarantine/gone.reason.json", "accepted/mark",
    ].map { "s3://test/" + $0 }
    let before = objects.keys
    let said = try prune(isDryRun: true)
    #expect(said.failures.isEmpty && said.pruned.map(\.path) == wanted && objects.keys == before)
    let gone = try prune()
    #expect(gone.failures.isEmpty && gone.pruned.map(\.path) == wanted && gone.skipped.isEmpty)
    #expect(gone.pruned.map(\.bytes) == [1, 3, 4, Self.reason.count, 0])
    let left =
      young + other + [
        "quarantine/bad.a", "quarantine/stranger.reason.json", "quarantine/late", "quarantine/late.reason.json",
      ]
    #expect(objects.keys == left.sorted())
    #expect(try prune().pruned.isEmpty)
  }

  @Test func placesWithoutAMaximumAgeAreNotPruned() throws {
    put("done/old")
    put("quarantine/bad")
    put("accepted/mark")
    #expect(try prune(kept: nil, quarantined: nil).pruned.isEmpty)
    #expect(try prune(quarantined: nil).pruned.map(\.path) == ["s3://test/done/old"])
    #expect(objects.keys == ["accepted/mark", "quarantine/bad"])
  }

  /// The age counts in whole seconds, and a batch stays as long as it is not older than the maximum.
  @Test func batchGoesASecondAfterItsMaximumAge() throws {
    put("done/old", days: 1)
    #expect(try prune().pruned.isEmpty)
    objects.age("done/old", seconds: Self.dayS + 1)
    #expect(try prune().pruned.count == 1)
  }

  /// A worker puts another batch under the name after it was listed.
  @Test(arguments: ["done/old", "quarantine/old"])
  func batchThatCameMeanwhileStays(key: String) throws {
    put(key)
    put("quarantine/old.reason.json", Self.reason)
    let client = StoppingObjects(objects) { [objects] _ in
      if objects[key] == [1, 2, 3] { objects[key] = [4] }
    }
    let client2 = StoppingObjects(objects) { [objects] _ in objects.age(key, seconds: 0) }
    // The first request is a list: it has to show the old batch.
    let lists = try objects.list(String(key.prefix { $0 != "/" }) + "/", after: nil)
    #expect(lists.contains { $0.key == key })
    for client in [client, client2] {
      put(key)
      let result = try prune(ListingFirst(lists, client))
      #expect(result.failures.isEmpty && objects[key] != nil)
      if key.hasPrefix("quarantine") { #expect(objects["quarantine/old.reason.json"] != nil) }
    }
  }

  /// The process is killed before each request. A batch that is left still has its reason, and the next run removes the rest.
  @Test func killedRunIsFinishedByTheNextOne() throws {
    func fill() {
      for key in objects.keys { objects[key] = nil }
      put("done/old")
      for name in ["bad", "worse"] {
        put("quarantine/" + name)
        put("quarantine/\(name).reason.json", Self.reason)
      }
    }
    fill()
    let whole = StoppingObjects(objects)
    _ = try prune(whole)
    #expect(objects.keys.isEmpty && whole.requests > 10)
    for request in 0..<whole.requests {
      fill()
      _ = try prune(StoppingObjects(objects, after: request))
      for name in ["bad", "worse"] where objects["quarantine/" + name] != nil {
        #expect(objects["quarantine/\(name).reason.json"] != nil, "request \(request)")
      }
      #expect(try prune().failures.isEmpty && objects.keys.isEmpty, "request \(request): \(objects.keys)")
    }
  }

  @Test func failureInOnePlaceStopsNoOther() throws {
    put("done/old")
    put("quarantine/bad")
    let result = try prune(StoppingObjects(objects, after: 0, failures: 1))
    #expect(result.failures.count == 1 && result.pruned.map(\.path) == ["s3://test/quarantine/bad"])
  }

  @Test func oldSessionIsListedWithItsPlace() throws {
    let store = try package.store(nil, [])
    try package.publish(0..<10, store)
    for key in objects.keys where key.hasSuffix(".json") { objects.age(key, seconds: 2 * Self.dayS) }
    #expect(try prune().ending == ["s3://test/output/walk"])
    let id = try package.session
    _ = try store.end(id, .quiet, ifQuietForMs: nil, cancellation: .never)
    let request = try #require(try store.takeEndRequest(of: id))
    try store.removeEndRequest(request)
    let gone = try prune()
    #expect(gone.pruned.map(\.path) == ["s3://test/output/walk"])
    #expect(gone.pruned.map(\.what) == ["a session of 2 segments"])
    #expect(objects.keys == ["index/walk/head.json"])
  }
}

/// A client whose first list of a place is of an earlier time.
private struct ListingFirst: ObjectClient {
  private let first: [ObjectInfo]
  private let client: any ObjectClient

  init(_ first: [ObjectInfo], _ client: any ObjectClient) { (self.first, self.client) = (first, client) }

  func get(_ key: String, limit: Int) throws -> StoredObject? { try client.get(key, limit: limit) }
  func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
    try client.download(key, to: path, limit: limit)
  }
  func head(_ key: String) throws -> ObjectInfo? { try client.head(key) }
  func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws -> ObjectTag? {
    try client.put(key, body, kind, when: condition)
  }
  func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
    try client.copy(key, tag, to: target)
  }
  func delete(_ key: String, _ tag: ObjectTag?) throws { try client.delete(key, tag) }
  func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    key == nil && first[0].key.hasPrefix(prefix) ? first : try client.list(prefix, after: key)
  }
}
