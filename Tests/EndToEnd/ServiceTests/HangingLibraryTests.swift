import Foundation
import TestSupport
import Testing

/// Libraries that never return, exhaust memory, or fail for one batch only (`Tests/torture/hostile_library.c`). The
/// worker loses only that batch.
@Suite struct HangingLibraryTests {
  private let spool: TestSpool
  /// Bytes in a file that make the hostile library act on it.
  private static let mark = "HOSTILE!"

  /// The directory of the hostile library, which is built once.
  private static let library = Result {
    // Blanks separate the names in LD_PRELOAD.
    let directory = try ScratchDirectory(in: URL(fileURLWithPath: "/tmp"))
    let source = Fixture.root.appendingPathComponent("Tests/torture/hostile_library.c").path
    try Tool.output(
      "clang",
      ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", source, "-o", directory.path("hostile_library.so")])
    return directory
  }

  init() throws { spool = try TestSpool() }

  /// - Parameter mark: the bytes that make a call hostile; nil for all calls.
  private func environment(_ call: String, _ way: String, mark: String? = mark) throws -> [String: String] {
    var variables = [
      "LD_PRELOAD": try Self.library.get().path("hostile_library.so"), "HOSTILE_CALL": call, "HOSTILE_WAY": way,
    ]
    variables["HOSTILE_MARK"] = mark
    return variables
  }

  /// A JPEG with the mark in an unused quantization table. The worker strips comments before it decodes.
  private func markedImage() throws -> [UInt8] {
    let image = Array(try Fixture("exact-1fps").bytes("0001.jpg"))
    let table = Array(Self.mark.utf8) + [UInt8](repeating: 7, count: 64 - Self.mark.utf8.count)
    return image[..<2] + [0xFF, 0xDB, 0, 67, 3] + table + image[2...]
  }

  /// Adds a batch of one frame that makes the decoder hang.
  private func addMarked() throws {
    let draft = spool.path + "/tmp/bad"
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    try Data(markedImage()).write(to: URL(fileURLWithPath: draft + "/1767859512340.jpg"))
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/bad")
  }

  /// Adds an archive that makes the archive reader hang.
  private func addMarkedArchive() throws {
    let folder = try spool.scratch.directory("archive")
    try FileManager.default.copyItem(
      atPath: Fixture("exact-1fps").path + "/0001.jpg", toPath: folder + "/\(Self.mark)1767859512340.jpg")
    try Tool.output("tar", ["-cf", spool.path + "/tmp/bad", "-C", folder, "."])
    try FileManager.default.moveItem(atPath: spool.path + "/tmp/bad", toPath: spool.path + "/incoming/bad")
  }

  /// Returns a process and all its descendants.
  private func family(of process: Int32) -> Set<Int32> {
    var family: Set<Int32> = [process]
    var parents: [Int32: Int32] = [:]
    for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
      guard let number = Int32(name), let text = try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8),
        let rest = text.split(separator: ")").last?.split(separator: " "), rest.count > 2
      else { continue }
      parents[number] = Int32(rest[1])
    }
    while true {
      let more = Set(parents.filter { family.contains($0.value) }.keys).subtracting(family)
      if more.isEmpty { return family }
      family.formUnion(more)
    }
  }

  private func isThere(_ process: Int32) -> Bool { kill(process, 0) == 0 }

  @Test(arguments: ["avcodec_send_packet", "archive_read_next_header"], ["sleep", "spin", "allocate"])
  func hangOrMemoryExhaustionCostsItsBatchOnly(call: String, way: String) throws {
    // Half of the memory limit is for pictures of this many pixels; the limit stops a library that allocates without
    // end.
    let server = try RunningServer(
      ["run", "--spool", spool.path, "--max-decode", "1", "--limit", "pixels=1000000"],
      environment: environment(call, way))
    if call == "archive_read_next_header" { try addMarkedArchive() } else { try addMarked() }
    try spool.add("exact-1fps")
    var seen: Set<Int32> = []
    try spool.waitUntil("the bad batch is in quarantine and the good one published") {
      seen.formUnion(family(of: server.processIdentifier))
      return try spool.names("quarantine").contains("bad.reason.json")
        && FileManager.default.fileExists(atPath: spool.output + "/exact-1fps/session.json")
    }
    let cause = try spool.causes()["bad"] ?? ""
    #expect(cause.contains("takes more than 1 s"), "\(cause)")
    #expect(try server.get("/healthz").status == 200 && server.get("/readyz").status == 200)
    try spool.addSmall("after", startMs: 1_767_859_512_340)
    try spool.waitUntil("next is done") { FileManager.default.fileExists(atPath: spool.output + "/after/session.json") }
    seen.formUnion(family(of: server.processIdentifier))
    #expect(server.stop() == 0)
    try spool.waitUntil("all processes have ended") { !seen.contains(where: isThere) }
  }

  /// The worker retries after a decoder exits or has no memory. It quarantines a batch that always causes this.
  @Test(
    arguments: ["avcodec_send_packet", "archive_read_next_header"], Extent.of(["exit"], full: ["exit", "nomemory"]))
  func batchThatAlwaysFailsEndsInQuarantine(call: String, way: String) throws {
    let server = try RunningServer(["run", "--spool", spool.path], environment: environment(call, way))
    if call == "archive_read_next_header" { try addMarkedArchive() } else { try addMarked() }
    // The worker makes five attempts, with 85 seconds between the first and the last.
    for _ in 0..<5 {
      do {
        try spool.waitUntil("the batch is in quarantine") { try spool.names("quarantine").contains("bad.reason.json") }
        break
      } catch {}
    }
    #expect(try spool.causes()["bad"]?.contains("out of memory") == true)
    #expect(server.stop() == 0)
  }

  /// The worker survives a decoder process that hangs. A hang of the encoder, which runs in the worker itself, needs a
  /// restart.
  @Test func encoderThatHangsIsReportedAndTheWorkerRestarts() throws {
    let port = try freePort()
    // The mark is the fixture's size, 180 × 320 pixels.
    let server = try RunningServer(
      ["run", "--spool", spool.path, "--max-time", "2", "--jobs", "1"],
      environment: environment("avcodec_receive_packet", "sleep", mark: "180x320"), listening: "127.0.0.1:\(port)")
    try spool.add("exact-1fps")
    try spool.waitUntil("/healthz reports a stuck batch") {
      let reply = try server.get("/healthz")
      return reply.status == 503 && reply.text.contains("exact-1fps has been stuck in encode")
    }
    #expect(try server.get("/readyz").text.contains("stuck"))
    #expect(try server.get("/metrics").text.contains("encoder_worker_batches_stuck 1"))
    try spool.waitUntil("the worker has restarted") {
      (try? server.get("/metrics").text.contains("encoder_worker_rescues_total 1")) == true
    }
    if Extent.isFull {
      // The worker quarantines a batch that hangs three workers, and publishes others.
      try spool.add("odd-size")
      try spool.waitUntil("the batch is in quarantine") { try spool.names("quarantine").contains("exact-1fps") }
      try spool.waitUntil("odd-size is published") { try !names(in: spool.output).filter { $0 != ".staging" }.isEmpty }
      #expect(server.stop() == 0)
    } else {
      try spool.waitUntil("the worker claimed the batch again") { try spool.names("incoming").isEmpty }
      #expect([0, 75].contains(server.stop()))
    }
  }

  /// The disk never answers. The worker obeys the signal, and the next worker publishes the batch.
  @Test func workerThatHangsInDiskIOObeysTheSignal() throws {
    let worker = try RunningWorker(
      ["--spool", spool.path], environment: environment("fsync", "sleep", mark: "/.staging/"))
    try spool.add("exact-1fps")
    try spool.waitUntil("the worker has claimed the batch") {
      let staged = FileManager.default.subpaths(atPath: spool.output + "/.staging") ?? []
      return try spool.names("incoming").isEmpty
        && staged.contains { $0.split(separator: "/").count == 2 && !$0.hasSuffix("alive") }
    }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 75)
    try spool.drain()
    #expect(try PublishedSession(spool.output + "/exact-1fps").captured.count == 12)
  }

  @Test(arguments: ["sleep", "allocate"]) func videoThatHangsItsReaderIsRefused(way: String) throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: spool.scratch)
    #expect(session.captured.count == 12)
    let (path, film) = (spool.scratch.path("output/exact-1fps"), spool.scratch.path("film.mp4"))
    try EncoderWorker.run("stitch", path, "--to", film)
    let environment = try environment("av_read_frame", way, mark: nil)
    for arguments in [
      ["verify", path], ["stitch", path, "--to", spool.scratch.path("other.mp4")],
      ["pictures", "--sheet", path, "--to", spool.scratch.path("sheet.png")],
      ["reencode", path, "--output", spool.scratch.path("anew"), "--quality", "small"],
      [
        "reencode", film, "--output", spool.scratch.path("anew"), "--quality", "small", "--session", "film", "--start",
        "1767859512340",
      ],
    ] {
      let result = try Tool.run(
        "prlimit", ["--as=4000000000", EncoderWorker.path] + arguments + ["--max-decode", "1"], environment: environment
      )
      #expect(result.status == 65, "\(arguments): \(result.status) \(result.errors)")
      #expect(
        (result.text + result.errors).contains("takes more than 1 s") || arguments.contains("--sheet"),
        "\(result.text + result.errors)")
    }
    let server = try RunningServer(
      ["serve", spool.scratch.path("output"), "--max-decode", "1"], environment: environment)
    #expect(try server.get("/sessions/exact-1fps/thumbnail.jpg").status == 422)
    #expect(try server.get("/healthz").status == 200)
  }

  /// The worker retries once in a new process, since a machine can pause.
  @Test func videoReaderThatHangsOnceIsReplaced() throws {
    _ = try EncoderWorker.encode(Fixture("exact-1fps"), into: spool.scratch)
    let (path, film) = (spool.scratch.path("output/exact-1fps"), spool.scratch.path("film.mp4"))
    var environment = try environment("av_read_frame", "sleep", mark: nil)
    environment["HOSTILE_TIMES"] = "1"
    // `reencode` reads the whole film once before it decodes pictures.
    for (arguments, before) in [
      (["verify", path], 0), (["stitch", path, "--to", film], 0),
      (
        [
          "reencode", film, "--output", spool.scratch.path("anew"), "--quality", "small", "--session", "film",
          "--start",
          "1767859512340",
        ], 40
      ),
    ] {
      environment["HOSTILE_AFTER"] = "\(before)"
      let result = try Tool.run(EncoderWorker.path, arguments + ["--max-decode", "1"], environment: environment)
      #expect(result.status == 0, "\(arguments): \(result.status) \(result.errors)")
    }
    #expect(try PublishedSession(spool.scratch.path("anew/film")).captured.count == 12)
  }

  /// The exit status of a drain includes batches that were quarantined before a restart.
  @Test(.enabled(if: Extent.isFull)) func restartedDrainKeepsItsCounts() throws {
    try spool.add(file: "a", [1, 2, 3])
    try spool.add("exact-1fps")
    let result = try Tool.run(
      EncoderWorker.path, ["--spool", spool.path, "--drain", "--jobs", "1", "--max-time", "2"],
      environment: environment("avcodec_receive_packet", "sleep", mark: "180x320"))
    #expect(result.status == 65)
    #expect(result.errors.contains(" error worker.restarting batch=exact-1fps "))
    #expect(result.errors.contains("2 batches in quarantine"), "\(result.errors)")
  }

  /// Returns a port that no process uses: a server gets it from the kernel and releases it.
  private func freePort() throws -> Int {
    let server = try RunningServer(["serve", try spool.scratch.directory("nothing")])
    defer { _ = server.stop() }
    return Int(server.port)
  }
}
