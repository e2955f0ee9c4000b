import Foundation
import TestSupport
import Testing

@Suite struct StopTests {
  private let spool: TestSpool

  init() throws {
    spool = try TestSpool()
  }

  /// Adds a batch of large pictures that takes long enough for the test to stop the worker.
  private func addLarge(_ name: String, frames: Int) throws {
    let draft = spool.path + "/tmp/" + name
    try LargePictures.fill(draft, frames: frames)
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/" + name)
  }

  /// Removes all but the first `frames` frames of each batch, which shortens the last run of a test.
  private func shorten(to frames: Int) throws {
    for path in FileManager.default.subpaths(atPath: spool.path) ?? [] {
      let (directory, name) = (spool.path + "/" + path, URL(fileURLWithPath: path).lastPathComponent)
      guard name.hasPrefix("slow"), path.hasPrefix("incoming/") || path.hasPrefix("claimed/") else { continue }
      guard !name.hasSuffix(".png"), let all = try? names(in: directory) else { continue }
      for frame in all.sorted().dropFirst(frames) where frame.hasSuffix(".png") {
        try FileManager.default.removeItem(atPath: directory + "/" + frame)
      }
    }
  }

  /// Starts a worker and waits until it has claimed all batches.
  private func start(_ options: String...) throws -> RunningWorker {
    let worker = try RunningWorker(["--spool", spool.path] + options)
    try spool.waitUntil("the worker has claimed all batches") {
      let claimed = FileManager.default.subpaths(atPath: spool.path + "/claimed") ?? []
      let batches = claimed.filter { $0.split(separator: "/").count == 3 }
      return try spool.names("incoming").isEmpty && !batches.isEmpty
        && batches.allSatisfy { $0.contains("~\(worker.processIdentifier)~") }
    }
    return worker
  }

  @Test func stoppedWorkerReturnsItsClaims() throws {
    try addLarge("slow", frames: 200)
    let worker = try start()
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try spool.names("incoming") == ["slow"])
    #expect(try names(in: spool.path + "/incoming/slow").count == 200)
    #expect(try spool.names("claimed").isEmpty)
    #expect(try names(in: spool.output) == [".staging"])
    #expect(try names(in: spool.output + "/.staging").isEmpty)
  }

  /// A worker that waits for a session's lock obeys the signal and returns its claim.
  @Test func workerThatWaitsForALockObeysTheSignal() throws {
    let session = try spool.scratch.directory("spool/output/exact-1fps")
    let directory = open(session, O_RDONLY | O_DIRECTORY)
    defer { close(directory) }
    #expect(flock(directory, LOCK_EX) == 0)
    try spool.add("exact-1fps")
    let worker = try start()
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try spool.names("incoming") == ["exact-1fps"])
    #expect(try names(in: session).isEmpty)
  }

  @Test func secondSignalStopsAtOnceAndTheNextWorkerTakesOver() throws {
    try addLarge("slow", frames: 200)
    let worker = try start()
    worker.signal(SIGINT)
    usleep(200_000)
    worker.signal(SIGINT)
    #expect(try worker.wait() == 0)
    try shorten(to: 3)
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest)
    #expect(try PublishedSession(spool.output + "/slow").captured.count == 3)
  }

  @Test func aKilledWorkersBatchIsTakenOverAtOnce() throws {
    try addLarge("slow", frames: 200)
    let worker = try start("--drain")
    worker.signal(SIGKILL)
    #expect(try worker.wait() == -SIGKILL)
    #expect(try spool.names("claimed").count == 1)
    try shorten(to: 3)
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest)
    #expect(try PublishedSession(spool.output + "/slow").captured.count == 3)
  }

  @Test func aBatchThatKillsThreeWorkersIsQuarantined() throws {
    try addLarge("slow", frames: 200)
    for _ in 0..<3 {
      let worker = try start()
      usleep(300_000)
      worker.signal(SIGKILL)
      #expect(try worker.wait() == -SIGKILL)
    }
    #expect(try spool.drain().status == 65)
    let reason = try String(contentsOfFile: spool.path + "/quarantine/slow.reason.json", encoding: .utf8)
    #expect(reason.contains("3 workers died"))
  }

  /// A worker with four batches is killed. The worker counts the crash only against a batch that it ran alone.
  @Test func crashOfAWorkerWithSeveralBatchesCountsAgainstNone() throws {
    for number in 0..<4 { try addLarge("slow\(number)", frames: 100) }
    for jobs in ["4", "1", "1"] {
      let worker = try start("--jobs", jobs)
      usleep(300_000)
      worker.signal(SIGKILL)
      #expect(try worker.wait() == -SIGKILL)
    }
    try shorten(to: 3)
    let result = try spool.drain()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try spool.isAtRest)
    for number in 0..<4 { #expect(try PublishedSession(spool.output + "/slow\(number)").captured.count == 3) }
  }

  @Test func stoppedEncodeExitsWith75() throws {
    try addLarge("slow", frames: 400)
    let worker = try RunningWorker(["encode", spool.path + "/incoming/slow", "--output", spool.output])
    try spool.waitUntil("encode has started") { (FileManager.default.subpaths(atPath: spool.output) ?? []).count > 3 }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 75)
    #expect(try names(in: spool.output) == [".staging"])
    #expect(try names(in: spool.output + "/.staging").isEmpty)
  }

  @Test func stoppedWorkerReturnsABatchWithALongHold() throws {
    try addLarge("slow", frames: 1)
    let json =
      #"{"version":1,"session":"slow","capture":"onChange","endMs":\#(1_767_859_512_340 + 24 * 3_600_000),"frames":[{"file":"1767859512340.png","timeMs":1767859512340}]}"#
    try Data(json.utf8).write(to: URL(fileURLWithPath: spool.path + "/incoming/slow/batch.json"))
    let worker = try start()
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try spool.names("incoming") == ["slow"])
  }

  /// Files in the output that the worker did not write are an environment error (exit status 75).
  @Test func damagedOutputReturnsTheBatchToTheQueue() throws {
    try spool.add("exact-1fps")
    _ = try spool.scratch.directory("spool/output/exact-1fps")
    let damaged = try spool.scratch.file("spool/output/exact-1fps/segment-1767859512340.json", [])
    try spool.add("gap")
    let result = try spool.drain()
    #expect(result.status == 75)
    #expect(result.errors.contains("segment-1767859512340.json: not JSON"))
    #expect(try spool.names("incoming") == ["exact-1fps"])
    #expect(FileManager.default.fileExists(atPath: spool.output + "/gap/session.json"))
    try FileManager.default.removeItem(atPath: damaged)
    #expect(try spool.drain().status == 0)
  }

  @Test func unwritableOutputReturnsTheBatchToTheQueue() throws {
    try spool.add("single-frame")
    for output in ["/dev/null/x", "/proc/none"] {
      let result = try spool.drain("--output", output)
      #expect([74, 75].contains(result.status))
      #expect(result.errors.contains("mkdir \(output.prefix(6))"))
      #expect(try spool.names("incoming") == ["single-frame"])
      #expect(try spool.names("quarantine").isEmpty)
    }
    #expect(try spool.drain().status == 0)
  }
}
