import Foundation
import TestSupport
import Testing

@Suite struct StopTests {
  private let spool: TestSpool

  init() throws {
    spool = try TestSpool()
  }

  /// Two large pictures, made once for all tests.
  private static let pictures = Result {
    let scratch = try ScratchDirectory()
    try Tool.output(
      "ffmpeg",
      ["-v", "error", "-f", "lavfi", "-i", "testsrc2=s=2400x3200:r=1", "-frames:v", "2", scratch.path("%d.png")])
    return scratch
  }

  /// A batch of large pictures that takes a while.
  private func addLarge(_ name: String, frames: Int) throws {
    let draft = spool.path + "/tmp/" + name
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    let pictures = try Self.pictures.get()
    for frame in 0..<frames {
      link(pictures.path("\(frame % 2 + 1).png"), draft + "/\(1_767_859_512_340 + frame * 1_000).png")
    }
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/" + name)
  }

  /// Starts a worker and waits until it holds all there is.
  private func start(_ options: String...) throws -> RunningWorker {
    let worker = try RunningWorker(["--spool", spool.path] + options)
    try spool.waitUntil("all is held by it") {
      let claimed = FileManager.default.subpaths(atPath: spool.path + "/claimed") ?? []
      let batches = claimed.filter { $0.split(separator: "/").count == 3 }
      return try spool.names("incoming").isEmpty && !batches.isEmpty
        && batches.allSatisfy { $0.contains("~\(worker.processIdentifier)~") }
    }
    return worker
  }

  @Test func whatIsHeldIsHandedBack() throws {
    try addLarge("slow", frames: 1_000)
    let worker = try start()
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try spool.names("incoming") == ["slow"])
    #expect(try names(in: spool.path + "/incoming/slow").count == 1_000)
    #expect(try spool.names("claimed").isEmpty)
    #expect(try names(in: spool.output) == [".staging"])
    #expect(try names(in: spool.output + "/.staging").isEmpty)
  }

  /// Somebody who holds the session's lock, and is stopped, does not stop others for ever.
  @Test func aSessionThatIsLockedForEverIsGivenUp() throws {
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

  @Test func aSecondSignalEndsAtOnceAndTheNextWorkerTakesOver() throws {
    try addLarge("slow", frames: 20)
    let worker = try start()
    worker.signal(SIGINT)
    usleep(200_000)
    worker.signal(SIGINT)
    #expect(try worker.wait() == 0)
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest)
    #expect(try PublishedSession(spool.output + "/slow").captured.count == 20)
  }

  @Test func aKilledWorkersBatchIsTakenOverAtOnce() throws {
    try addLarge("slow", frames: 20)
    let worker = try start("--drain")
    worker.signal(SIGKILL)
    #expect(try worker.wait() == -SIGKILL)
    #expect(try spool.names("claimed").count == 1)
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest)
    #expect(try PublishedSession(spool.output + "/slow").captured.count == 20)
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

  /// Four batches at once and a killed worker: only what kills a worker alone is blamed.
  @Test func innocentBatchesAreNotBlamed() throws {
    for number in 0..<4 { try addLarge("slow\(number)", frames: 20) }
    for jobs in ["4", "1", "1"] {
      let worker = try start("--jobs", jobs)
      usleep(300_000)
      worker.signal(SIGKILL)
      #expect(try worker.wait() == -SIGKILL)
    }
    let result = try spool.drain()
    #expect(result.status == 0, "\(result.errors)")
    #expect(try spool.isAtRest)
    for number in 0..<4 { #expect(try PublishedSession(spool.output + "/slow\(number)").captured.count == 20) }
  }

  @Test func aStoppedEncodeSaysThatThereIsMoreToDo() throws {
    try addLarge("slow", frames: 400)
    let worker = try RunningWorker(["encode", spool.path + "/incoming/slow", "--output", spool.output])
    try spool.waitUntil("encoding") { (FileManager.default.subpaths(atPath: spool.output) ?? []).count > 3 }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 75)
    #expect(try names(in: spool.output) == [".staging"])
    #expect(try names(in: spool.output + "/.staging").isEmpty)
  }

  @Test func aLongHoldIsHandedBackToo() throws {
    try addLarge("slow", frames: 1)
    let json =
      #"{"version":1,"session":"slow","capture":"onChange","endMs":\#(1_767_859_512_340 + 24 * 3_600_000),"frames":[{"file":"1767859512340.png","timeMs":1767859512340}]}"#
    try Data(json.utf8).write(to: URL(fileURLWithPath: spool.path + "/incoming/slow/batch.json"))
    let worker = try start()
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try spool.names("incoming") == ["slow"])
  }

  /// What is in the output and was not written by us is nobody's fault but the machine's.
  @Test func damagedOutputIsNotTheBatchesFault() throws {
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

  @Test func aFailingMachineIsNotTheBatchesFault() throws {
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
