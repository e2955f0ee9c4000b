// Imports the library without @testable, because an embedding server sees only the public API.
import Foundation
import Logging
import SegmentEncoder
import TestSupport
import Testing

/// Workers that run inside of this process.
@Suite struct SpoolWorkerTests {
  private let spool: TestSpool
  private let metrics = CountedMetrics()

  init() throws { spool = try TestSpool() }

  private func worker(
    _ path: String? = nil, output: String? = nil, threads: Int = 1, counting metrics: CountedMetrics? = nil
  ) throws -> SpoolWorker {
    var settings = SpoolWorker.Settings()
    (settings.output, settings.threads) = (output, threads)
    return try SpoolWorker(
      spool: path ?? spool.path, settings,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, metrics: metrics ?? self.metrics)
  }

  /// The sessions that `verify` accepts.
  private func verified() throws -> [String] {
    let sessions = try spool.names("output").filter { !$0.hasPrefix(".") }
    for session in sessions { #expect(try EncoderWorker.run("verify", spool.output + "/" + session).status == 0) }
    return sessions
  }

  @Test func workerPublishesUntilItIsStoppedAndTheNextOneContinues() async throws {
    for session in ["exact-1fps", "gap"] {
      let worker = try worker()
      #expect(worker.trouble == "not running")
      async let run: Void = worker.run()
      try spool.add(session)
      try await eventually("\(session) is counted") { metrics.batches("published") == (session == "gap" ? 2 : 1) }
      #expect(worker.trouble == nil)
      await worker.stop()
      #expect(try spool.isAtRest)
      try await run
      #expect(worker.trouble != nil)
    }
    #expect(try verified() == ["exact-1fps", "gap"])
    #expect(metrics.batches("published") == 2)
  }

  @Test func countersBeginWithZeroAndCountBatchesFramesAndBytes() async throws {
    let worker = try worker()
    let zeros = metrics.counters
    #expect(zeros.count == 14 && zeros.values.allSatisfy { $0 == 0 })
    async let run: Void = worker.run()
    try spool.add("exact-1fps")
    try await eventually("the batch is counted") { metrics.batches("published") == 1 }
    try spool.add("exact-1fps", as: "again")
    try spool.add(file: "broken.tar", Array("no archive".utf8))
    try await eventually("all batches are counted") {
      metrics.batches("duplicate") == 1 && metrics.batches("quarantined") == 1
    }
    await worker.stop()
    try await run
    let counters = metrics.counters
    let videos = try spool.names("output/exact-1fps").filter { $0.hasSuffix(".mp4") }
    let bytes = try videos.reduce(0) { $0 + (try Fixture(file: "\(spool.output)/exact-1fps/\($1)").bytes().count) }
    #expect(counters.keys.sorted() == zeros.keys.sorted())
    #expect(counters["encoder_worker_segments_total"] == videos.count)
    #expect(counters["encoder_worker_frames_total"] == 12 && counters["encoder_worker_bytes_total"] == bytes)
    #expect(counters["encoder_worker_rescues_total"] == 0 && counters["encoder_worker_failures_total"] == 0)
    // The captures of the fixture are older than a day.
    let durations = ["encoder_worker_batch_duration_seconds": 2, "encoder_worker_arrival_to_published_seconds": 1]
    #expect(metrics.durations == durations)
  }

  @Test func cancelledTaskEndsTheRunWithoutAnErrorAndLeavesTheSpool() async throws {
    let worker = try worker()
    let run = Task { try await worker.run() }
    try spool.add("exact-1fps")
    try await eventually("the batch is counted") { metrics.batches("published") == 1 }
    run.cancel()
    try await run.value
    #expect(try spool.isAtRest && verified() == ["exact-1fps"])
  }

  @Test func taskThatIsCancelledBeforeItsStartLeavesTheSpool() async throws {
    let worker = try worker()
    let run = Task {
      while !Task.isCancelled { await Task.yield() }
      try await worker.run()
    }
    run.cancel()
    try await run.value
    #expect(try spool.isAtRest)
  }

  @Test func workerThatIsStoppedBeforeItsRunLeavesTheSpoolAndWorksOnNothing() async throws {
    try spool.add("exact-1fps")
    let worker = try worker()
    #expect(try !spool.names("claimed").isEmpty)
    await worker.stop()
    await worker.stop()
    try await worker.run()
    #expect(try spool.names("claimed").isEmpty && spool.names("output/.staging").isEmpty)
    #expect(try spool.names("incoming") == ["exact-1fps"])
    #expect(metrics.counters.values.allSatisfy { $0 == 0 })
  }

  @Test func nextWorkerRemovesWhatAWorkerLeftThatWasReleasedWithoutARun() async throws {
    do { _ = try worker() }
    #expect(try !spool.names("claimed").isEmpty)
    let next = try worker()
    async let run: Void = next.run()
    try spool.add("exact-1fps")
    try await eventually("the batch is counted") { metrics.batches("published") == 1 }
    await next.stop()
    try await run
    #expect(try spool.isAtRest)
  }

  @Test func everyCallOfRunAndStopWaitsForTheSameEnd() async throws {
    let worker = try worker()
    let claimed = spool.path + "/claimed"
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<3 { group.addTask { try await worker.run() } }
      for _ in 0..<3 {
        group.addTask {
          await worker.stop()
          let left = try names(in: claimed)
          #expect(left.isEmpty)
        }
      }
      try await group.waitForAll()
    }
    #expect(try spool.isAtRest)
  }

  @Test func stopWithBatchesInWorkLosesNone() async throws {
    let names = (0..<20).map { "s@\(1_767_859_512_340 + $0 * 10_000)" }
    for name in names { try spool.addSmall(name, startMs: Int64(name.dropFirst(2))!) }
    let first = try worker(threads: 2)
    async let run: Void = first.run()
    try await eventually("a batch is published") { (metrics.batches("published") ?? 0) > 0 }
    await first.stop()
    try await run
    #expect(try spool.names("claimed").isEmpty && spool.names("output/.staging").isEmpty)
    #expect(try spool.names("incoming").count + (metrics.batches("published") ?? 0) == names.count)
    let second = try worker(threads: 2)
    async let rest: Void = second.run()
    try await eventually("all batches are published") { metrics.batches("published") == names.count }
    await second.stop()
    try await rest
    #expect(try spool.isAtRest && verified() == ["s"])
    #expect(metrics.batches("duplicate") == 0 && metrics.counters["encoder_worker_frames_total"] == 2 * names.count)
  }

  @Test func twoWorkersOfAProcessShareASpoolAndStopOneByOne() async throws {
    let count = 40
    let others = CountedMetrics()
    let (first, second) = (try worker(), try worker(counting: others))
    async let firstRun: Void = first.run()
    async let secondRun: Void = second.run()
    for number in 0..<count {
      try spool.addSmall("s\(number % 4)@\(number)", startMs: 1_767_859_512_340 + Int64(number) * 10_000)
    }
    func published() -> Int { (metrics.batches("published") ?? 0) + (others.batches("published") ?? 0) }
    try await eventually("half of the batches are published") { published() >= count / 2 }
    await first.stop()
    try await firstRun
    #expect(second.trouble == nil)
    try await eventually("all batches are published") { published() == count }
    await second.stop()
    try await secondRun
    #expect(try spool.isAtRest && verified() == ["s0", "s1", "s2", "s3"])
    #expect(metrics.batches("duplicate") == 0 && others.batches("duplicate") == 0)
    #expect(others.counters["encoder_worker_rescues_total"] == 0)
  }

  @Test func removedDirectoryOfAWorkerEndsItsRunWithAnErrorAndAnotherWorkerContinues() async throws {
    let worker = try worker()
    let run = Task { try await worker.run() }
    try await eventually("the worker runs") { worker.trouble == nil }
    // The worker changes files there meanwhile.
    try await eventually("its directory is gone") {
      for name in try spool.names("claimed") {
        try? FileManager.default.removeItem(atPath: "\(spool.path)/claimed/\(name)")
      }
      return try spool.names("claimed").isEmpty
    }
    try spool.add("exact-1fps")
    var failure = ""
    do { try await run.value } catch { failure = "\(error)" }
    #expect(failure.contains("start it again"))
    #expect(worker.trouble != nil && (metrics.counters["encoder_worker_failures_total"] ?? 0) > 0)
    // It is over: this waits for nothing.
    await worker.stop()
    let next = try self.worker()
    async let second: Void = next.run()
    try await eventually("the batch is published") { metrics.batches("published") == 1 }
    await next.stop()
    try await second
    #expect(try verified() == ["exact-1fps"])
  }

  @Test func worksOnlyBelowDirectoriesThatItCanMake() throws {
    let file = try spool.scratch.file("file", [1])
    #expect(throws: DiskError.self) { try worker(file + "/spool") }
    var failure = ""
    do { _ = try worker(output: spool.path + "/incoming/output") } catch { failure = "\(error)" }
    #expect(failure.contains("outside"))
  }
}
