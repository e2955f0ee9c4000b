import Foundation
import JSON
import TestSupport
import Testing

@testable import Remote

/// The operator's commands for a queue and a store.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct RemoteStatusTests: RemoteSuite {
  let servers: RemoteServers

  init() throws { servers = try RemoteServers() }

  private struct Status: Decodable {
    struct Depth: Decodable {
      let count: Int
      let oldestMs: Int64?
      let atLeast: Bool?
    }
    let queue, store: String
    let waiting, claimed, owed, quarantined, ending, open, refusedEvents: Depth
    let isApproximate, bytesAreEstimated: Bool
    let bytesADay: Int?
  }

  private func status(_ words: String...) throws -> Status {
    let result = try run(["status", "--json"] + words)
    try #require(result.status == 0, "\(result.errors)")
    return try JSONDecoder().decode(Status.self, from: Data(result.text.utf8))
  }

  /// Enqueues batches that cannot be encoded, and runs a worker that finds that out.
  private func quarantine(_ names: String...) throws {
    for name in names { _ = try client.put("incoming/" + name, .bytes([1, 2, 3]), .archive, when: .absent) }
    _ = try run(["reconcile"])
    #expect(try run(["run", "--drain"]).status == 65)
  }

  @Test func statusCountsBatchesOfEachStateAndChangesNothing() throws {
    let empty = try status()
    #expect(empty.waiting.count == 0 && empty.owed.count == 0 && empty.bytesADay == nil && !empty.bytesAreEstimated)
    #expect(try queue.command("DBSIZE") == ["0"] && keys("").isEmpty)
    try quarantine("bad", "folder/worse")
    _ = try run(["enqueue", "--session", "phone", Fixture("jittered").path])
    #expect(try client.put("notifications/key.json", .bytes([1]), .json, when: .absent) != nil)
    _ = try Tool.run(EncoderWorker.path, ["end", "phone", "--store", location], environment: environment)
    let (before, names) = (try queue.command("XINFO", "GROUPS", "encoder-worker"), try keys(""))
    let now = try status()
    #expect(now.waiting.count == 1 && now.claimed.count == 0 && now.owed.count == 1 && now.quarantined.count == 2)
    #expect(now.ending.count == 1 && now.refusedEvents.count == 1 && !now.isApproximate)
    for depth in [now.waiting, now.owed, now.quarantined, now.ending] {
      #expect(depth.oldestMs.map { (0..<3_600_000).contains($0) } == true && depth.atLeast == nil)
    }
    #expect(now.store == location + "/" && now.queue.hasPrefix("redis://127.0.0.1"))
    #expect(try queue.command("XINFO", "GROUPS", "encoder-worker") == before && keys("") == names)
    let table = try run(["status"])
    for (state, count) in [("waiting", 1), ("claimed", 0), ("owed", 1), ("quarantined", 2), ("sessions to end", 1)] {
      #expect(table.text.contains(try Regex("(^|\n)\(state) +\(count)\\b")), "\(state): \(table.text)")
    }
    #expect(table.text.contains("bytes a day are not known") && table.text.contains("quarantine list"))
  }

  @Test func statusIsRefreshedUntilASignal() throws {
    let worker = try RunningWorker(["status", "--watch", "--json"] + remote, environment: environment)
    try waitUntil("it takes signals") { try worker.takesSignals }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
  }

  @Test func wrongPlacesAreWrongUsage() throws {
    for words in [
      [], ["--queue", queue.url], ["--store", location], ["--spool", scratch.path("s")] + remote,
      ["--output", scratch.path("o")] + remote,
    ] {
      let result = try Tool.run(EncoderWorker.path, ["status"] + words, environment: environment)
      #expect(result.status == 64, "\(words): \(result.errors)")
    }
    let other = try Tool.run(
      EncoderWorker.path, ["status", "--queue", queue.url, "--store", "s3://nowhere"], environment: environment)
    #expect(other.status == 75 && other.errors.contains("NoSuchBucket"), "\(other.errors)")
  }

  @Test func quarantineIsListedShownRetriedAndPurged() throws {
    try quarantine("bad", "bad 2", "folder/worse")
    let list = try run(["quarantine", "list"])
    #expect(list.status == 0 && list.text.split(separator: "\n").count == 4, "\(list.text)\(list.errors)")
    let lines = try run(["quarantine", "list", "--json"]).text.split(separator: "\n")
    #expect(lines.count == 3 && lines.allSatisfy { $0.contains(#""format":"quarantine-reason/1""#) })
    // The store is enough.
    let shown = try Tool.run(
      EncoderWorker.path, ["quarantine", "show", "bad 2", "--store", location], environment: environment)
    #expect(shown.status == 0 && shown.text.contains("\(location)/quarantine/bad 2"), "\(shown.errors)")
    #expect(shown.text.contains("cause"))

    let again = try run(["quarantine", "retry", "bad 2"])
    #expect(again.status == 0 && again.text == "bad 2: waits again as bad 2\n", "\(again.errors)")
    #expect(try keys("incoming/") == ["bad 2"] && keys("quarantine/").count == 4)
    #expect(try queue.command("XLEN", "encoder-worker") == ["1"])

    let dry = try run(["quarantine", "purge", "--all", "--dry-run"])
    #expect(dry.status == 0 && dry.text.contains("\(location)/quarantine/bad: would be removed"), "\(dry.errors)")
    #expect(try keys("quarantine/").count == 4)
    #expect(try run(["quarantine", "purge", "folder/worse"]).status == 0)
    #expect(try keys("quarantine/") == ["bad", "bad.reason.json"])
    #expect(try run(["quarantine", "purge", "--all"]).status == 0)
    #expect(try keys("quarantine/").isEmpty && keys("incoming/") == ["bad 2"])
    #expect(try run(["quarantine", "list"]).errors.contains("nothing in quarantine"))
    for words in [
      ["retry", "bad"], ["show", "../incoming/bad 2"], ["show", "nothing"], ["purge"], ["purge", "bad.reason.json"],
      ["list", "--events"], ["list", "--spool", scratch.path("s")],
    ] {
      let result = try run(["quarantine"] + words)
      #expect(result.status == 64, "\(words): \(result.text)\(result.errors)")
    }
    #expect(try keys("incoming/") == ["bad 2"])
  }

  /// A spool of the settings, or of the call, comes before a store of the settings.
  @Test func storeOfTheSettingsDoesNotCountBesideASpool() throws {
    try quarantine("bad")
    let spool = try TestSpool()
    let both = environment.merging(["ENCODER_WORKER_STORE": location, "ENCODER_WORKER_SPOOL": spool.path]) { $1 }
    let ofSpool = try Tool.run(EncoderWorker.path, ["quarantine", "list"], environment: both)
    #expect(ofSpool.status == 0 && ofSpool.errors.contains("nothing in quarantine"), "\(ofSpool.errors)")
    let ofStore = try Tool.run(
      EncoderWorker.path, ["quarantine", "list", "--store", location], environment: both)
    #expect(ofStore.text.contains("bad"), "\(ofStore.errors)")
    let alone = environment.merging(["ENCODER_WORKER_STORE": location]) { $1 }
    #expect(try Tool.run(EncoderWorker.path, ["quarantine"], environment: alone).text.contains("bad"))
  }
}
