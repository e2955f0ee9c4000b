import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import Sessions

/// Files of a store that a live playlist no longer names stay for viewers of the playlist before, and are removed then.
@Suite struct SupersededObjectsTests {
  private let package: GrowingPackage
  private let graceMs = Int(SupersededFiles.graceMs)
  private let playlist = "output/walk/hls/session.m3u8"
  private let list = "superseded/walk"

  init() throws { package = try GrowingPackage() }

  private func lists() -> [String] { package.objects.keys.filter { $0.hasPrefix("superseded/") } }

  private func superseded() throws -> SupersededObjects {
    SupersededObjects(of: ObjectSession(id: try package.session, objects: package.objects, name: "s3://test/"))
  }

  /// Names of fragments that no playlist has.
  private func fragments(_ count: Int) -> [String] {
    (0..<count).map { "segment-\(1_767_859_000_000 + $0)-90c15cef.m4s" }
  }

  private func text(_ key: String) -> String? { package.objects[key].map { String(decoding: $0, as: UTF8.self) } }

  @Test func viewerOfAStoreGetsItsBytesUntilTheyAreRemoved() throws {
    let store = try package.store()
    try package.publish(10..<12, store)
    let before = package.storedFiles
    try package.publish(0..<2, store)
    let superseded = try package.storedFiles.subtracting(package.storedWanted())
    #expect(superseded.count == 1 && before.isSuperset(of: superseded) && lists() == ["superseded/walk"])
    package.pass(ms: graceMs - 1)
    #expect(store.flushPending(all: true).isEmpty)
    #expect(package.storedFiles.isSuperset(of: superseded))
    package.pass(ms: 1)
    // Another worker removes them.
    #expect(try package.store().flushPending(all: false).isEmpty)
    #expect(try package.storedFiles == package.storedWanted() && lists().isEmpty)
  }

  /// A worker that dies before any request leaves nothing that stays for ever, and never a playlist without its files.
  @Test func workerThatDiesAtAnyRequestLeavesNothingToStay() throws {
    let store = try package.store()
    try package.publish(10..<12, store)
    let late = try package.batch(0..<2)
    let start = package.objects.keys.map { ($0, package.objects[$0]) }
    var requests = 0
    var isDone = false
    while !isDone {
      for key in package.objects.keys { package.objects[key] = nil }
      for (key, bytes) in start { package.objects[key] = bytes }
      let dying = try package.store(StoppingObjects(package.objects, after: requests))
      isDone = (try? package.encoder(dying).publish(late)) != nil && dying.flushPending(all: true).isEmpty
      #expect(try package.storedFiles.isSuperset(of: package.storedWanted()), "\(requests) requests")
      let next = try package.store()
      _ = try package.encoder(next).publish(late)
      #expect(next.flushPending(all: true).isEmpty)
      // A worker that died while it removed files is given up later.
      for _ in 0..<3 {
        package.pass(ms: graceMs + Int(SupersededFiles.takeoverMs))
        #expect(next.flushPending(all: true).isEmpty)
        #expect(try package.storedFiles.isSuperset(of: package.storedWanted()), "\(requests) requests")
      }
      #expect(try package.storedFiles == package.storedWanted() && lists().isEmpty, "\(requests) requests")
      requests += 1
    }
    #expect(requests > 20)
  }

  @Test func workerThatDiesDuringARemovalIsTakenOver() throws {
    try package.publish(10..<12, package.store())
    try package.publish(0..<2, package.store())
    package.pass(ms: graceMs)
    for requests in 0..<12 {
      _ = try package.store(StoppingObjects(package.objects, after: requests)).flushPending(all: false)
      #expect(try package.storedFiles.isSuperset(of: package.storedWanted()))
    }
    package.pass(ms: Int(SupersededFiles.takeoverMs))
    #expect(try package.store().flushPending(all: false).isEmpty)
    #expect(try package.storedFiles == package.storedWanted() && lists().isEmpty)
  }

  /// A worker had made the fragment and died, and another had listed it.
  @Test func listedFileThatIsNamedAgainStays() throws {
    let store = try package.store()
    try package.publish(0..<2, store)
    let before = package.objects[playlist]
    let late = try package.batch(2..<4)
    _ = try package.encoder(store).publish(late)
    #expect(store.flushPending(all: true).isEmpty)
    let text = String(decoding: try #require(package.objects[playlist]), as: UTF8.self)
    let fragment = try #require(text.split(separator: "\n").last)
    package.objects[playlist] = before
    package.objects["superseded/walk"] = Array("1 \(fragment)\n".utf8)
    _ = try package.encoder(store).publish(late)
    #expect(lists() == ["superseded/walk"])
    #expect(store.flushPending(all: true).isEmpty)
    #expect(try package.storedFiles == package.storedWanted() && package.storedFiles.contains(String(fragment)))
    #expect(lists().isEmpty)
  }

  @Test func fileThatIsBeingRemovedIsNotNamed() throws {
    let name = fragments(1)[0]
    package.objects[list] = Array("-1 \(name)\n".utf8)
    #expect(throws: SegmentWriteConflict.self) { try superseded().keep([name]) }
    #expect(throws: SegmentWriteConflict.self) { try superseded().replace([], with: [name], among: [], dueMs: 1) }
    try superseded().replace([], with: [], among: ["gap.m4s"], dueMs: 1)
    #expect(text(list)?.hasPrefix("1 gap.m4s\n-1 \(name)\nwrite ") == true)
  }

  /// The list was written, and the playlist was not.
  @Test func viewersOfAStoreKeepTheirTimeAfterAFailedReplacement() throws {
    try package.publish(10..<12, package.store())
    let before = (text: package.objects[playlist], files: package.storedFiles)
    try package.publish(0..<2, package.store())
    package.objects[playlist] = before.text
    package.pass(ms: graceMs - 1_000)
    let store = try package.store()
    try package.publish(2..<4, store)
    package.pass(ms: graceMs - 1)
    #expect(store.flushPending(all: true).isEmpty)
    #expect(package.storedFiles.isSuperset(of: before.files))
    package.pass(ms: 1)
    #expect(store.flushPending(all: true).isEmpty)
    #expect(try package.storedFiles == package.storedWanted() && lists().isEmpty)
  }

  /// Batches wait while a worker removes files.
  @Test func scanRemovesAHundredFiles() throws {
    let names = fragments(250)
    for name in names { package.objects["output/walk/hls/" + name] = [1] }
    package.objects[list] = Array(names.map { "1 \($0)\n" }.joined().utf8)
    let store = try package.store()
    for left in [150, 50, 0] {
      #expect(store.flushPending(all: false).isEmpty)
      #expect(package.storedFiles.count == left)
      // The next scan follows soon, and not in a minute.
      #expect((store.dueInMs ?? .max <= 1_000) == (left > 0))
      package.pass(ms: 1_000)
    }
    #expect(lists().isEmpty)
  }

  /// A publisher waits for marked files.
  @Test func failedRemovalLeavesAtMostOneFileMarked() throws {
    let names = fragments(3)
    for failed in 0..<16 {
      for name in names { package.objects["output/walk/hls/" + name] = [1] }
      package.objects[list] = Array(names.map { "1 \($0)\n" }.joined().utf8)
      let client = StoppingObjects(package.objects, after: failed, failures: 1)
      _ = try package.store(client).flushPending(all: false)
      let marked = text(list)?.split(separator: "\n").filter { $0.hasPrefix("-") }.map { $0.split(separator: " ")[1] }
      #expect(package.storedFiles.count { marked?.contains(Substring($0)) == true } <= 1, "request \(failed) failed")
      package.pass(ms: Int(SupersededFiles.takeoverMs))
      #expect(try package.store().flushPending(all: false).isEmpty)
      #expect(package.storedFiles.isEmpty && lists().isEmpty, "request \(failed) failed")
    }
  }

  /// A worker died after it had removed a file. Another takes over while a third names the file again.
  @Test func fileOfANewPlaylistOutlastsATakeover() throws {
    try package.publish(0..<2, package.store())
    let start = package.objects.keys.map { ($0, package.objects[$0]) }
    let late = try package.batch(2..<4)
    let store = try package.store()
    _ = try package.encoder(store).publish(late)
    #expect(store.flushPending(all: true).isEmpty)
    let fragment = try #require(text(playlist)?.split(separator: "\n").last { $0.hasPrefix("segment-") })
    var (number, isDone) = (0, false)
    while !isDone {
      for key in package.objects.keys { package.objects[key] = nil }
      for (key, bytes) in start { package.objects[key] = bytes }
      package.objects[list] = Array("-1 \(fragment)\n".utf8)
      let other = try package.store()
      let client = StoppingObjects(package.objects) { [number] request in
        if request == number { #expect(other.flushPending(all: false).isEmpty) }
      }
      let store = try package.store(client)
      _ = try package.encoder(store).publish(late)
      // One that finds the mark tries again later.
      if !store.flushPending(all: true).isEmpty {
        #expect(other.flushPending(all: true).isEmpty && store.flushPending(all: true).isEmpty)
      }
      #expect(try package.storedFiles == package.storedWanted(), "before request \(number)")
      #expect(package.storedFiles.contains(String(fragment)))
      isDone = client.requests <= number
      number += 1
    }
    #expect(number > 20)
  }
}
