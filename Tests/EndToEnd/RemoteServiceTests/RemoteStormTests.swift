import Foundation
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches
@testable import Remote
@testable import Sessions

/// Workers, Redis and the receiver of events are killed at random. No batch is lost, and each is published as in a spool.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct RemoteStormTests: RemoteSuite {
  let servers: RemoteServers

  init() throws { servers = try RemoteServers() }

  /// Returns the names of the invalid batches: every nineteenth.
  private func badNames(_ numbers: Range<Int>) -> [String] {
    numbers.filter { $0 % 19 == 7 }.map { "s\($0 % 20)@\($0).tar" }
  }

  /// Uploads batches of two pictures, and some invalid ones, and adds the same batches to a spool.
  private func submit(_ numbers: Range<Int>, to spool: TestSpool) throws {
    let bad = badNames(numbers)
    let pictures = try (0..<6).map { number in
      Array(try Data(contentsOf: URL(fileURLWithPath: Fixture("exact-1fps").path + "/000\(number).jpg")))
    }
    for number in numbers {
      let name = "s\(number % 20)@\(number).tar"
      let startMs = 1_767_859_512_340 + Int64(number / 20) * 2_000
      let bytes: [UInt8]
      if bad.contains(name) {
        bytes = Array("no batch at all: \(number)".utf8)
      } else {
        bytes = try Archive.tar(
          (0..<2).map { ("\(startMs + Int64($0) * 1_000).jpg", pictures[(number + $0) % pictures.count]) })
      }
      try spool.add(file: name, bytes)
      #expect(try client.put("incoming/" + name, .bytes(bytes), .archive, when: .absent) != nil)
    }
  }

  /// Checks that the objects in the store equal the files of the spool, byte for byte. `verify` has checked the files:
  /// Tool.run calls it after each run.
  private func expectSame(_ spool: TestSpool, _ layout: String) throws {
    guard layout == "plain" else { return try expectSameCopies(spool) }
    var files: [String] = []
    for case let name as String in try #require(FileManager.default.enumerator(atPath: spool.output)) {
      if !name.hasPrefix("."), DurableFile.isFile(spool.output + "/" + name) { files.append(name) }
    }
    #expect(try keys("output/") == files.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    for name in files {
      let there = try client.get("output/" + name, limit: 1 << 30)
      #expect(try there?.bytes == DurableFile.contents(of: spool.output + "/" + name, limit: .max), "\(name)")
    }
  }

  /// Checks that copies of the stored sessions equal the files of the spool, byte for byte.
  private func expectSameCopies(_ spool: TestSpool) throws {
    let sessions = try FileManager.default.contentsOfDirectory(atPath: spool.output).filter { !$0.hasPrefix(".") }
    let stored = StoredSessions(client, name: location + "/")
    #expect(try stored.ids(below: ["index/"]).map(\.description).sorted() == sessions.sorted())
    for name in sessions {
      let id = try #require(SessionID(name))
      let copy = try StoredSession(id, of: stored, in: scratch.directory("copy-\(UUID())"), part: .whole) { _, _ in }
      try copy.writeIndex()
      try copy.fetchVideos(of: nil) { _, _ in }
      let files = try FileManager.default.contentsOfDirectory(atPath: spool.output + "/" + name)
        .filter { !$0.hasPrefix(".") }
      #expect(try FileManager.default.contentsOfDirectory(atPath: copy.path).sorted() == files.sorted())
      for file in files {
        #expect(
          FileManager.default.contentsEqual(atPath: copy.path + "/" + file, andPath: "\(spool.output)/\(name)/\(file)"))
      }
    }
  }

  /// Runs four workers until no batch is left. Kills a worker or Redis each time that a share of the batches is done.
  ///
  /// - Parameter midway: called once, when half of the batches are done.
  private func storm(kills maximum: Int, _ layout: String, midway: () throws -> Void = {}) throws {
    func worker() throws -> RunningWorker {
      try start("--lease", "10", "--jobs", "1", "--notify", receiver.url, "--layout", layout)
    }
    var workers = try (0..<4).map { _ in try worker() }
    // A worker that is killed at its start leaves the objects of its conditional-write probe.
    func owedCount() throws -> Int { try keys("incoming/").count { !$0.hasPrefix(".") } }
    let owed = try owedCount()
    var (kills, isMidway, orphans) = (0, false, Set<String>())
    try waitUntil("the four workers have done all batches", pauseMs: 5) {
      let left = try owedCount()
      if left == 0 { return true }
      // A worker that cannot reach the queue at its start exits, so that its service manager restarts it.
      for index in workers.indices where !workers[index].isRunning {
        #expect(try workers[index].wait() == 75)
        workers[index] = try worker()
      }
      if !isMidway, left < owed / 2 {
        isMidway = true
        try midway()
      }
      guard kills < maximum, left <= owed - owed * (kills + 1) / (maximum + 2) else { return false }
      // Waits a random time, so that the kill hits any step of the work on a batch.
      usleep(UInt32.random(in: 0..<20_000))
      try expectNotified()
      if kills % 3 == 0 {
        queue.kill()
        receiver.kill()
        usleep(200_000)
        try queue.restart()
        try receiver.restart()
      } else {
        guard let index = try killHolder(among: workers, orphans: &orphans) else { return false }
        workers[index] = try worker()
      }
      kills += 1
      return false
    }
    #expect(kills > 2 && isMidway)
    // A worker may have died after the receipt and before the queue's acknowledgement.
    try waitUntil("the queue is empty", pauseMs: 100) { try queue.command("XLEN", "encoder-worker") == ["0"] }
    for worker in workers where worker.isRunning {
      try waitUntil("the worker handles signals") { try worker.takesSignals }
      worker.signal(SIGTERM)
      #expect(try worker.wait() == 0)
    }
  }

  /// Checks that the event of each batch with a receipt is delivered, and has one key.
  private func expectNotified() throws {
    // Read the log after the receipts.
    let finished = try Set(keys("receipts/").compactMap { $0.split(separator: "/").first.map(String.init) })
    let events = try receiver.events()
    #expect(finished.subtracting(events.map(\.batch)).sorted() == [])
    #expect(Dictionary(grouping: events, by: \.batch).allSatisfy { Set($0.value.map(\.key)).count == 1 })
  }

  /// Kills a worker that holds a batch. The batch is unfinished until its lease expires and another worker takes it
  /// over.
  ///
  /// - Parameter orphans: entries whose worker was killed. They are skipped: three deaths would quarantine a good
  ///   batch.
  /// - Returns: the killed worker; nil if no worker holds another batch now.
  private func killHolder(among workers: [RunningWorker], orphans: inout Set<String>) throws -> Int? {
    for index in workers.indices.shuffled() where workers[index].isRunning {
      let worker = workers[index]
      worker.signal(SIGSTOP)
      // Four lines an entry: its id, its worker as HOST~PROCESS~MOMENT, idle time, deliveries.
      let lines = try queue.command("XPENDING", "encoder-worker", "encoder-worker", "-", "+", "100")
      let held = stride(from: 0, to: lines.count - 3, by: 4)
        .filter { lines[$0 + 1].contains("~\(worker.processIdentifier)~") }.map { lines[$0] }
      guard !held.isEmpty, orphans.isDisjoint(with: held) else {
        worker.signal(SIGCONT)
        continue
      }
      worker.signal(SIGKILL)
      _ = try worker.wait()
      orphans.formUnion(held)
      return index
    }
    return nil
  }

  /// Checks that each batch is published or quarantined with a reason, once, and as in the spool.
  private func expectAll(_ count: Int, _ spool: TestSpool, _ layout: String) throws {
    let bad = badNames(0..<count)
    // Published batches have none in packs.
    #expect(try keys("receipts/").count == (layout == "plain" ? count : bad.count))
    #expect(try Set(receiver.events().map(\.batch)).count == count)
    let kept = try keys("quarantine/")
    #expect(kept.sorted() == (bad + bad.map { $0 + ".reason.json" }).sorted())
    try expectSame(spool, layout)
    #expect(try run(["reconcile", "--json"]).text == "{\"misnamed\":0,\"owed\":0,\"queued\":0}\n")
  }

  @Test(arguments: ["plain", "packed"]) func noBatchIsLostWhenWorkersOrRedisAreKilled(layout: String) throws {
    let spool = try TestSpool()
    let (first, all) = (Extent.of(60, full: 1_800), Extent.of(90, full: 2_000))
    let bad = badNames(0..<first)
    try submit(0..<first, to: spool)
    #expect(try spool.drain().status == 65)
    let queued = try run(["reconcile", "--json"])
    #expect(queued.text == "{\"misnamed\":0,\"owed\":\(first),\"queued\":\(first)}\n", "\(queued.errors)")
    try storm(kills: Extent.of(6, full: 24), layout)
    try expectAll(first, spool, layout)
    try expectNotified()
    // Redis is told of each batch, too.
    let events = try streamed()
    #expect(Set(events.map(\.batch)).count == first)
    #expect(Set(events.map(\.key)) == Set(try receiver.events().map(\.key)))
    // Each invalid batch is among the dead letters, once.
    let letters = try queue.command("XRANGE", "{encoder-worker}:dead", "-", "+")
    for name in bad { #expect(letters.count { $0 == name } == 1, "\(name)") }
    #expect(try queue.command("XLEN", "{encoder-worker}:dead") == ["\(bad.count)"])

    // Then Redis loses all data in the middle of the work. The store still has all unfinished batches.
    try submit(first..<all, to: spool)
    #expect(try spool.drain().status == 65)
    _ = try run(["reconcile"])
    try storm(kills: 4, layout) {
      try queue.flush()
      let again = try run(["reconcile"])
      #expect(again.status == 0, "\(again.errors)")
    }
    try expectAll(all, spool, layout)
    try expectNotified()
  }
}
