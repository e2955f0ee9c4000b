import Foundation
import TestSupport
import Testing

@testable import Remote

/// `run --max-bytes` and `prune` with an object store, as an operator runs them.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct RemotePruneTests: RemoteSuite {
  private static let startMs: Int64 = 1_767_859_512_340

  let servers: RemoteServers

  init() throws { servers = try RemoteServers() }

  /// Enqueues batches of two seconds each, and publishes them in their order.
  private func publish(_ batches: Range<Int>, of session: String = "walk", _ words: String...) throws {
    for number in batches {
      let folder = try scratch.directory("pictures-\(UUID().uuidString)")
      for (index, picture) in ["0001.jpg", "0002.jpg"].enumerated() {
        let time = Self.startMs + Int64(2 * number + index) * 1_000
        try FileManager.default.copyItem(
          atPath: Fixture("exact-1fps").path + "/" + picture, toPath: "\(folder)/\(time).jpg")
      }
      let added = try run(["enqueue", "--session", session, folder])
      #expect(added.status == 0, "\(added.errors)")
    }
    let result = try run(["run", "--drain", "--jobs", "1"] + words)
    #expect(result.status == 0, "\(result.errors)")
  }

  private func starts(_ session: String = "walk") throws -> [Int] {
    try keys("output/\(session)/").filter { $0.hasPrefix("segment-") && $0.hasSuffix(".mp4") }
      .compactMap { Int($0.dropFirst(8).prefix(13)).map { ($0 - Int(Self.startMs)) / 2_000 } }
  }

  /// The bytes of all objects of sessions.
  private func bytes() throws -> Int {
    var (last, sum): (String?, Int) = (nil, 0)
    while case let page = try client.list("output/", after: last), !page.isEmpty {
      (last, sum) = (page.last?.key, sum + page.reduce(0) { $0 + $1.size })
    }
    return sum
  }

  private func prune(_ words: String...) throws -> Tool.Result { try run(["prune"] + words) }

  private func verify() throws {
    let result = try Tool.run(EncoderWorker.path, ["verify", "--store", location], environment: environment)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }

  @Test func workerKeepsTheSessionsOfAStoreBelowMaxBytes() throws {
    try publish(0..<10)
    let room = try bytes() / 2
    let result = try run(["run", "--drain", "--max-bytes", "\(room)", "--log-level", "info"])
    #expect(result.status == 0 && result.errors.contains("segments.removed"), "\(result.errors)")
    let left = try starts()
    #expect((3...6).contains(left.count) && left == Array((10 - left.count)..<10), "\(left)")
    #expect(try bytes() <= room)
    try verify()
    // The session goes on, and a late batch is refused.
    try publish(10..<11)
    #expect(try starts() == left + [10])
    try publish(0..<1)
    #expect(try starts() == left + [10])
    let other = try run(["run", "--drain", "--output", scratch.path("output"), "--max-bytes", "1"])
    #expect(other.status == 64 && other.errors.contains("--output works with --spool"), "\(other.errors)")
  }

  @Test func pruneRemovesWhatItHasShown() throws {
    try publish(0..<10, "--hls", "--keep-batches")
    _ = try client.put("incoming/bad", .bytes([1, 2, 3]), .archive, when: .absent)
    _ = try run(["reconcile"])
    #expect(try run(["run", "--drain"]).status == 65)
    #expect(try prune("--done", "1d", "--quarantine", "1d", "--sessions", "1d").errors == "nothing to remove\n")
    // A store tells ages in seconds.
    sleep(3)
    let (before, room) = (try keys(""), try bytes() / 2)
    let words = ["prune", "--done", "1s", "--quarantine", "1s", "--max-bytes", "\(room)", "--json"]
    let said = try run(words + ["--dry-run"])
    #expect(said.status == 0 && said.errors.contains("would be removed"), "\(said.errors)")
    #expect(try keys("") == before)
    let gone = try run(words)
    #expect(gone.status == 0 && gone.text == said.text, "\(gone.text)\(gone.errors)")
    let lines = gone.text.split(separator: "\n")
    #expect(lines.count == 12 && lines.count { $0.contains("\"what\":\"a kept batch\"") } == 10, "\(gone.text)")
    #expect(lines.contains { $0.contains("\(location)/quarantine/bad\"") })
    #expect(lines.contains { $0.contains("\(location)/output/walk\"") && $0.contains("\"segments\":") })
    #expect(try keys("done/").isEmpty && keys("quarantine/").isEmpty && keys("incoming/").isEmpty)
    let left = try starts()
    #expect((2...7).contains(left.count) && left.last == 9, "\(left)")
    try verify()
  }

  @Test func oldSessionGoesAfterAWorkerHasAnnouncedItsEnd() throws {
    try publish(0..<2)
    try publish(0..<2, of: "other")
    sleep(3)
    let first = try prune("--sessions", "1s", "--tombstones")
    #expect(first.status == 0 && first.text.isEmpty, "\(first.text)\(first.errors)")
    #expect(first.errors.contains("\(location)/output/walk: a worker ends it; prune removes it after"))
    #expect(try run(["run", "--drain"]).status == 0)
    let gone = try prune("--sessions", "1s", "--tombstones")
    #expect(gone.text.split(separator: "\n").count == 2 && gone.text.contains("walk: a session of 2 segments"))
    #expect(try keys("output/").isEmpty && keys("ending/").isEmpty)
    // A tombstone refuses what comes later.
    try publish(2..<3)
    #expect(try keys("output/").isEmpty)
  }

  /// The store is enough, and one place only.
  @Test func wrongPlacesAreWrongUsage() throws {
    for words in [
      [], ["--queue", queue.url], ["--spool", scratch.path("s")] + remote, ["--output", scratch.path("o")] + remote,
      ["--lease", "10"] + remote, ["--done", "week"] + remote, ["--max-bytes", "0"] + remote,
    ] {
      let result = try Tool.run(EncoderWorker.path, ["prune"] + words, environment: environment)
      #expect(result.status == 64 && result.text.isEmpty, "\(words): \(result.errors)")
    }
    let store = try Tool.run(
      EncoderWorker.path, ["prune", "--store", location, "--retain", "7d"], environment: environment)
    #expect(store.status == 0 && store.errors == "nothing to remove\n", "\(store.errors)")
    let other = try Tool.run(EncoderWorker.path, ["prune", "--store", "s3://nowhere"], environment: environment)
    #expect(other.status == 75 && other.errors.contains("NoSuchBucket"), "\(other.errors)")
    // A spool of the call comes before a store of the settings.
    let spool = try TestSpool()
    let settings = environment.merging(["ENCODER_WORKER_STORE": location]) { $1 }
    let ofSpool = try Tool.run(
      EncoderWorker.path, ["prune", "--spool", spool.path, "--lease", "10"], environment: settings)
    #expect(ofSpool.status == 0 && ofSpool.errors == "nothing to remove\n", "\(ofSpool.errors)")
  }
}
