import Foundation
import TestSupport
import Testing

@testable import Deleting
@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import Remote
@testable import SegmentEncoder
@testable import Sessions
@testable import WorkQueues

/// Conditional writes of the program, each of whose answers is lost once. The client repeats the write, and its condition does not hold
/// any more.
@Suite struct LostAnswerTests {
  private let package: GrowingPackage
  private var objects: MemoryObjects { package.objects }

  init() throws { package = try GrowingPackage() }

  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  // MARK: The function

  @Test func writeRecognisesItsOwnBytesOnly() throws {
    objects.loseAnswer(of: 0)
    let tag = try #require(try objects.putOwn("x", [1, 2], .text, when: .absent))
    objects.loseAnswer(of: 0)
    let next = try #require(try objects.putOwn("x", [3, 4], .text, when: .matching(tag)))
    #expect(try objects.head("x")?.tag == next)
    for others: [UInt8] in [[], [3], [3, 5], [3, 4, 5]] {
      objects["x"] = others
      #expect(try objects.putOwn("x", [3, 4], .text, when: .absent) == nil)
      #expect(try objects.putOwn("x", [3, 4], .text, when: .matching(tag)) == nil)
      #expect(objects["x"] == others)
    }
    objects["x"] = nil
    #expect(try objects.putOwn("x", [3, 4], .text, when: .matching(tag)) == nil && objects["x"] == nil)
  }

  /// A worker finishes the batch before its producer looks at it.
  @Test func createdObjectThatIsRemovedAtOnceIsCreatedAgain() throws {
    objects.loseAnswer(of: 0)
    let client = StoppingObjects(objects) { [objects] request in if request == 1 { objects["incoming/a"] = nil } }
    let names = MemoryNames()
    #expect(try StoreReceiver(ObjectBatchRepository(client, name: "s3://test/"), names).take([1, 2], as: "a"))
    #expect(objects["incoming/a"] == [1, 2] && names.count == 1)
    #expect(try !StoreReceiver(ObjectBatchRepository(client, name: "s3://test/"), names).take([1, 3], as: "a"))
  }

  // MARK: The start of a worker, and `config check`

  @Test(arguments: 0..<5) func startTakesNoLostAnswerForAnIgnoredCondition(write: Int) throws {
    objects.loseAnswer(of: write)
    try objects.requireConditions(tryingAt: "incoming/.x", name: "s3://test")
    #expect(objects.keys.isEmpty && objects.puts == 5)
  }

  /// A store that ignores one condition, or both.
  private struct Careless: ObjectClient {
    let objects: MemoryObjects
    let ignoresAbsent: Bool
    let ignoresMatching: Bool

    func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws -> ObjectTag? {
      let isIgnored = if case .matching = condition { ignoresMatching } else { ignoresAbsent }
      return try objects.put(key, body, kind, when: isIgnored ? .always : condition)
    }

    func get(_ key: String, limit: Int) throws -> StoredObject? { try objects.get(key, limit: limit) }
    func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? { nil }
    func head(_ key: String) throws -> ObjectInfo? { try objects.head(key) }
    func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool { false }
    func delete(_ key: String, _ tag: ObjectTag?) throws { try objects.delete(key, tag) }
    func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] { [] }
  }

  @Test(arguments: [(true, false), (false, true), (true, true)], 0..<6)
  func storeThatIgnoresConditionsIsRefused(ignores: (absent: Bool, matching: Bool), lost: Int) throws {
    let client = Careless(objects: objects, ignoresAbsent: ignores.absent, ignoresMatching: ignores.matching)
    objects.loseAnswer(of: lost)
    let failure = #expect(throws: Failure.self) { try client.requireConditions(tryingAt: "x", name: "s3://test") }
    #expect(failure?.description.contains("ignores the conditions") == true && objects.keys.isEmpty)
  }

  @Test func checkOfAStoreTakesNoLostAnswerForAFault() throws {
    objects.loseAnswer(of: .max)
    _ = try StoreCheck(objects).run()
    let writes = objects.puts
    #expect(writes > 80)
    for write in 0..<writes {
      objects.loseAnswer(of: write)
      let faults = try StoreCheck(objects).run().filter { $0.fault != nil }
      #expect(faults.isEmpty, "write \(write): \(faults)")
    }
  }

  // MARK: Deletion

  @Test func sessionIsDeletedAndAllowedAgain() throws {
    let id = try package.session
    _ = try package.publish(0..<2, package.store())
    let deletion = ObjectDeletion(objects, name: "s3://test/")
    let tombstone = Tombstone(id, deletedAtMs: 1_767_859_512_340, reason: "asked for")
    objects.loseAnswer(of: 0)
    #expect(try deletion.add(tombstone) == tombstone)
    _ = try deletion.remove(id)
    objects.loseAnswer(of: 0)
    #expect(try deletion.removeTombstone(of: id))
    #expect(try !deletion.removeTombstone(of: id))
  }

  // MARK: Attempts

  @Test func attemptIsTakenBackOnce() throws {
    let notes = AttemptNoteStore(objects: objects)
    objects.loseAnswer(of: 0)
    try notes.takeBack("new")
    #expect(try notes.read("new") == AttemptNotes(attempts: 0, failures: 0))
    try notes.write(AttemptNotes(attempts: 3, failures: 1), "old")
    objects.loseAnswer(of: 0)
    try notes.takeBack("old")
    #expect(try notes.read("old") == AttemptNotes(attempts: 2, failures: 1))
  }

  /// Another worker takes back an attempt at the same moment, and writes the same numbers.
  @Test func equalNotesOfAnotherWorkerAreNotTakenForOwnOnes() throws {
    let notes = AttemptNoteStore(objects: objects)
    try notes.write(AttemptNotes(attempts: 3, failures: 1), "old")
    objects.before { [objects] _ in
      objects.before(nil)
      try? notes.takeBack("old")
    }
    try notes.takeBack("old")
    #expect(try notes.read("old") == AttemptNotes(attempts: 1, failures: 1))
  }

  // MARK: Files that no playlist names

  private let list = "superseded/walk"
  private let name = "segment-1767859000000-90c15cef.m4s"
  private var file: String { "output/walk/hls/" + name }

  private func listed() -> [String] {
    String(decoding: objects[list] ?? [], as: UTF8.self).split(separator: "\n").map(String.init)
      .filter { !$0.hasPrefix("write ") }
  }

  @Test func supersededFileIsRemovedByTheScanThatMarksIt() throws {
    objects[file] = [1]
    objects[list] = bytes("1 \(name)\n")
    objects.loseAnswer(of: 0)
    #expect(try package.store().flushPending(all: false).isEmpty)
    #expect(objects[file] == nil && objects[list] == nil)
  }

  /// Another worker marks the same file in the same millisecond: it removes the file, and a publisher may create it again then.
  @Test func markOfAnotherWorkerIsNotTakenForAnOwnOne() throws {
    objects[file] = [1]
    objects[list] = bytes("1 \(name)\n")
    objects.before { [objects, package, list, name] key in
      if key == list { objects[list] = Array("-\(package.unixMs) \(name)\n".utf8) }
    }
    #expect(try package.store().flushPending(all: false).isEmpty)
    #expect(objects[file] == [1] && listed() == ["-\(package.unixMs) \(name)"])
  }

  @Test func changeOfAListOutlastsTheRemovalOfAnEmptyOne() throws {
    objects[list] = bytes("1 \(name)\n")
    // Request 0 reads the list, and request 1 removes it.
    let client = StoppingObjects(objects) { [objects, list, name] request in
      if request == 1 { objects[list] = Array("1 \(name)\n1 gap.m4s\n".utf8) }
    }
    try SupersededObjects(of: ObjectSession(id: package.session, objects: client, name: "s3://test/")).keep([name])
    #expect(listed() == ["1 gap.m4s"])
  }

  // MARK: Ends

  @Test func requestForAnEndIsTaken() throws {
    let id = try package.session
    let store = try package.store()
    try package.publish(0..<2, store)
    #expect(try store.requestEnd(EndRequest(id, .request)) == .requested)
    objects.loseAnswer(of: 0)
    let held = try #require(try store.takeEndRequest(of: id))
    try store.removeEndRequest(held)
    #expect(try store.endRequests().isEmpty)
  }

  @Test func endIsRecordedOnce() throws {
    let id = try package.session
    let store = try package.store()
    try package.publish(0..<2, store)
    objects.loseAnswer(of: 0)
    guard case .ended(let ended) = try store.end(id, .request, ifQuietForMs: nil, cancellation: .never) else {
      return #expect(Bool(false), "it has not ended")
    }
    #expect(try ObjectSession(id: id, objects: objects, name: "").head().end == ended.end)
  }

  // MARK: Batches

  /// A batch goes to quarantine, and another worker publishes it before its copy: its reason is removed again.
  @Test func reasonOfAPublishedBatchIsRemoved() throws {
    let batches = ObjectBatchRepository(objects, name: "s3://test/")
    objects["incoming/a"] = [1]
    let tag = try #require(try batches.tag(of: "a"))
    var claim = Claim(id: "1", name: "a", attempt: 1, failures: 0)
    claim.tag = tag
    objects.loseAnswer(of: 0)
    let other = StoppingObjects(objects)
    let client = StoppingObjects(objects) { request in
      // After the reason was read again, and before the copy.
      if request == 2 { try? ObjectBatchRepository(other, name: "").writeReceipt("a", tag, .published, [:]) }
    }
    let reason = BadBatch("read", "a", "cut off", advice: "send it again")
    #expect(
      try ObjectBatchRepository(client, name: "s3://test/").quarantine(claim, reason, worker: WorkerID()) == nil)
    #expect(objects.keys.filter { $0.hasPrefix("quarantine/") }.isEmpty)
    #expect(objects["incoming/a"] == nil)
  }

  /// A worker died two hours ago, and has left objects with other content.
  @Test func leftObjectIsReplaced() throws {
    let batch = try package.batch(0..<2)
    let store = try package.store()
    _ = try package.encoder(store).publish(batch)
    let segments = objects.keys.filter { $0.hasPrefix("output/walk/segment-") }
    let expected = segments.map { objects[$0] }
    #expect(segments.count == 2)
    // Each write finds a left object first: that of the video, then that of the manifest.
    for (left, write) in [(".mp4", 1), (".json", 2)] {
      for key in objects.keys where left == ".mp4" || !key.hasSuffix(".mp4") { objects[key] = nil }
      let key = try #require(segments.first { $0.hasSuffix(left) })
      objects[key] = [1, 2, 3]
      for key in segments { objects.age(key, seconds: ObjectStore.orphanTTL) }
      objects.loseAnswer(of: write)
      #expect(try package.encoder(package.store()).publish(batch).count == 1)
      #expect(segments.map { objects[$0] } == expected)
    }
  }
}
