import FileSystem
import Foundation
import TestSupport
import Testing

/// Workers whose Redis lies: they neither crash nor grow, and say why they do not work.
@Suite(.enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct HostileRedisWorkerTests {
  private let scratch: ScratchDirectory
  private let store: StoreServer

  init() throws { (scratch, store) = (try ScratchDirectory(), try StoreServer.shared.get()) }

  private var log: String { (try? String(contentsOfFile: scratch.path("log"), encoding: .utf8)) ?? "" }

  private func start(_ server: HostileRedis, _ words: [String]) throws -> RunningWorker {
    let place = ["--queue", server.url, "--store", "s3://\(StoreServer.bucket)/\(UUID().uuidString)"]
    return try RunningWorker(
      ["run"] + place + ["--jobs", "1"] + words,
      environment: store.environment.merging(["TMPDIR": scratch.path("")]) { $1 },
      under: ["sh", "-c", "exec \"$@\" 2>'\(scratch.path("log"))'", "-"])
  }

  /// The peak of a process' memory, in bytes.
  private func peak(of worker: RunningWorker) throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(worker.processIdentifier)/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
    return 1_024 * (try #require(line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }))
  }

  /// Stops a worker that has met the lie.
  private func expectEnd(of worker: RunningWorker) throws {
    #expect(try peak(of: worker) < 256 << 20)
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0, "\(log)")
    #expect(log.utf8.count < 8_000, "\(log)")
  }

  @Test(arguments: [
    ("drip", "no whole answer within 5 s"), ("error", "ERR xxx"), ("endless-list", "more than 65536 elements"),
    ("endless-lists", "more than 65536 elements"), ("endless-text", "more than 1048576 bytes"),
    ("garbage", "Protocol error"), ("types", "an unknown reply"),
  ])
  func replyThatIsNoneIsLogged(mode: String, cause: String) throws {
    let server = try HostileRedis(mode)
    let worker = try start(server, [])
    try waitUntil("the worker has logged the cause") { log.contains("queue.failed") && log.contains(cause) }
    try expectEnd(of: worker)
  }

  @Test(arguments: ["attempts-high", "attempts-low"])
  func attemptsBeyondAllNumbersDoNotEndTheWorker(mode: String) throws {
    let server = try HostileRedis(mode)
    let worker = try start(server, [])
    try waitUntil("the worker has claimed all entries") {
      try server.counts()["next", default: 0] >= 3 && server.counts()["begin", default: 0] >= 1
    }
    try expectEnd(of: worker)
  }

  /// Each claim of these asks so often; between two there is a pause of 200 ms, also in a drain.
  @Test(arguments: [("waiting", 1), ("nameless", 200), ("duplicates", 200)], [[], ["--drain"]])
  func queueThatGivesNothingIsNotAskedWithoutAPause(lie: (mode: String, requests: Int), words: [String]) throws {
    let server = try HostileRedis(lie.mode)
    let beganMs = MonotonicClock.milliseconds()
    let worker = try start(server, words)
    try waitUntil("the worker has made some claims") { try server.counts()["next", default: 0] >= 5 * lie.requests }
    let counts = try server.counts()
    let pauses = (MonotonicClock.milliseconds() - beganMs) / 200 + 1
    #expect(counts["next", default: 0] <= lie.requests * (pauses + 1), "\(counts)")
    #expect(counts["waiting", default: 0] <= 2 * pauses + 2, "\(counts)")
    if lie.mode == "waiting" { try waitUntil("the worker has logged it") { log.contains("queue.miscounted") } }
    try expectEnd(of: worker)
  }

  @Test(arguments: [[], ["--drain"]]) func entriesThatAreNeverHeldAreNotTakenOverWithoutAPause(words: [String]) throws {
    let server = try HostileRedis("takeovers")
    let beganMs = MonotonicClock.milliseconds()
    let worker = try start(server, words)
    try waitUntil("the worker has begun some") { try server.counts()["begin", default: 0] >= 32 }
    let counts = try server.counts()
    let pauses = (MonotonicClock.milliseconds() - beganMs) / 200 + 1
    #expect(counts["takeOver", default: 0] <= pauses + 1, "\(counts)")
    try expectEnd(of: worker)
  }
}
