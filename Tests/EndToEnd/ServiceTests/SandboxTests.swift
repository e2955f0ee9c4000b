import Foundation
import TestSupport
import Testing

/// Sandboxed processes decode untrusted images. They have no other permission, and may crash.
@Suite struct SandboxTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Makes a batch that takes long enough for the test to find its decoder.
  private func batch(frames: Int) throws -> String {
    try LargePictures.fill(scratch.path("slow"), frames: frames)
    return scratch.path("slow")
  }

  private func children(of process: Int32) -> [Int32] {
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
    return threads.flatMap { thread in
      let list = try? String(contentsOfFile: "/proc/\(process)/task/\(thread)/children", encoding: .utf8)
      return (list ?? "").split(separator: " ").compactMap { Int32($0) }
    }
  }

  private func field(_ name: String, of process: Int32) -> String? {
    let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    return status?.split(separator: "\n").first { $0.hasPrefix(name + ":") }?
      .split(separator: ":")[1].trimmingCharacters(in: .whitespaces)
  }

  /// Returns a worker's decoder process once it is confined; nil if the worker has ended before.
  ///
  /// - Parameter isProbe: whether to return the process with which the worker probes the sandbox at its start. The
  ///   worker has a single thread until then.
  private func decoder(of worker: RunningWorker, but known: Set<Int32> = [], isProbe: Bool = false) throws -> Int32? {
    for _ in 0..<120_000 {
      let isStarting = field("Threads", of: worker.processIdentifier) == "1"
      for host in children(of: worker.processIdentifier) {
        let found = children(of: host).first { !known.contains($0) && field("Seccomp", of: $0) == "2" }
        if let found, isStarting == isProbe { return found }
      }
      guard kill(worker.processIdentifier, 0) == 0,
        field("State", of: worker.processIdentifier)?.hasPrefix("Z") == false
      else { return nil }
      usleep(1_000)
    }
    return nil
  }

  private func videos(_ output: String) throws -> [String: Data] {
    let names = FileManager.default.subpaths(atPath: output)?.filter { $0.hasSuffix(".mp4") } ?? []
    return try Dictionary(
      uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(fileURLWithPath: output + "/" + $0))) })
  }

  private func start(_ batch: String, _ output: String, _ options: String...) throws -> RunningWorker {
    try RunningWorker(["encode", batch, "--output", scratch.path(output), "--sandbox", "require"] + options)
  }

  @Test func aDecoderHasNoFilesNoNetworkAndLimits() throws {
    let pixels = 40_000_000
    let worker = try start(try batch(frames: 8), "output", "--limit", "pixels=\(pixels)")
    let decoder = try #require(try decoder(of: worker))
    #expect(field("NoNewPrivs", of: decoder) == "1")
    let limits = try String(contentsOfFile: "/proc/\(decoder)/limits", encoding: .utf8).split(separator: "\n")
    func limit(_ name: String) -> Substring? {
      limits.first { $0.hasPrefix(name) }?.dropFirst(name.count).split(separator: " ").first
    }
    for (name, value) in [
      ("Max file size", "0"), ("Max open files", "0"), ("Max processes", "0"), ("Max cpu time", "600"),
    ] {
      #expect(limit(name).map(String.init) == value, "\(name)")
    }
    // The memory in use, and what a picture of the largest size needs. The decoder uses part of that already.
    let allowed = try #require(limit("Max address space").flatMap { Int($0) })
    let inUse = try #require(field("VmSize", of: decoder).flatMap { Int($0.split(separator: " ")[0]) }) << 10
    let most = pixels * 32 + 256 << 20
    #expect((most - 192 << 20...most).contains(allowed - inUse), "\(allowed) \(inUse)")
    // Open descriptors: /dev/null, the socket and the shared memory for pictures.
    let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(decoder)/fd").map {
      try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(decoder)/fd/" + $0)
    }
    #expect(
      open.allSatisfy { $0 == "/dev/null" || $0.hasPrefix("socket:") || $0.hasPrefix("/memfd:pictures") }, "\(open)")
    #expect(try worker.wait() == 0)
  }

  @Test func videosAreTheSameInsideAndOutsideOfTheSandbox() throws {
    for fixture in ["colour-bars", "masks", "odd-size", "corrupt-frames", "wide-colour", "rotation"] {
      for mode in ["require", "off"] {
        let result = try EncoderWorker.run(
          "encode", Fixture(fixture).path, "--output", scratch.path(mode), "--sandbox", mode, "--session", fixture)
        #expect(result.status == 0, "\(fixture): \(result.errors)")
      }
    }
    let (inside, outside) = (try snapshot(of: scratch.path("require")), try snapshot(of: scratch.path("off")))
    #expect(inside.keys.sorted() == outside.keys.sorted())
    #expect(try videos(scratch.path("require")) == videos(scratch.path("off")))
  }

  /// The same for archives and videos.
  @Test func readerGivesTheSameInsideAndOutsideOfTheSandbox() throws {
    let archive = scratch.path("batch.tar.zst")
    try Tool.output("tar", ["-caf", archive, "-C", Fixture("jittered").path, "."])
    _ = try EncoderWorker.encode(Fixture("rotation"), into: scratch)
    let source = scratch.path("output/rotation")
    for mode in ["require", "off"] {
      let own = try scratch.directory(mode)
      for arguments in [
        ["encode", archive, "--output", own + "/output", "--session", "archive"],
        ["stitch", source, "--to", own + "/film.mp4"], ["stitch", source, "--to", own + "/hls", "--format", "hls"],
        ["pictures", "--sheet", source, "--to", own + "/sheet.png"],
        ["pictures", source, "--to", own + "/pictures.jsonl", "--changed-only"],
        ["reencode", source, "--output", own + "/anew", "--quality", "small"],
      ] {
        let result = try Tool.run(EncoderWorker.path, arguments + ["--sandbox", mode])
        #expect(result.status == 0, "\(arguments): \(result.errors)")
      }
      try Tool.output("cp", [own + "/film.mp4", scratch.path("film.mp4")])
      let result = try EncoderWorker.run(
        "reencode", scratch.path("film.mp4"), "--output", own + "/anew", "--quality", "small", "--start",
        "1767859512340", "--sandbox", mode)
      #expect(result.status == 0, "\(result.errors)")
      #expect(try EncoderWorker.run("verify", source, "--sandbox", mode).status == 0)
    }
    let (inside, outside) = (try snapshot(of: scratch.path("require")), try snapshot(of: scratch.path("off")))
    #expect(inside.mapValues(\.bytes) == outside.mapValues(\.bytes))
    #expect(inside.count > 20)
  }

  @Test func decoderThatCrashesIsReplacedWithoutLosingFrames() throws {
    let batch = try batch(frames: 8)
    #expect(try start(batch, "undisturbed").wait() == 0)
    let worker = try start(batch, "disturbed")
    let first = try #require(try decoder(of: worker))
    usleep(150_000)
    kill(first, SIGSEGV)
    #expect(try worker.wait() == 0)
    #expect(try videos(scratch.path("disturbed")) == videos(scratch.path("undisturbed")))
  }

  /// A user or the kernel's OOM killer kills the decoders; the picture is not the cause. The first one may have been idle, and is
  /// replaced at once.
  @Test func decoderThatIsKilledIsReplacedWithoutLosingFrames() throws {
    let batch = try batch(frames: 8)
    let worker = try start(batch, "output")
    var killed: Set<Int32> = []
    while killed.count < 2 {
      let decoder = try #require(try decoder(of: worker, but: killed))
      kill(decoder, SIGKILL)
      killed.insert(decoder)
    }
    #expect(try worker.wait() == 75)
    #expect(try videos(scratch.path("output")).isEmpty)
    #expect(try start(batch, "output").wait() == 0)
  }

  /// The machine can pause once.
  @Test func decoderThatHangsOnceIsReplacedWithoutLosingFrames() throws {
    let worker = try start(try batch(frames: 6), "output", "--max-decode", "10")
    kill(try #require(try decoder(of: worker)), SIGSTOP)
    #expect(try worker.wait() == 0)
    let session = try PublishedSession(scratch.path("output/slow"))
    #expect(session.manifests.flatMap(\.refused).isEmpty)
    #expect(session.manifests.flatMap(\.frames).filter { $0.status == "captured" }.count == 6)
  }

  /// The same for the decoder with which the worker probes the sandbox.
  @Test func sandboxProbeThatHangsOnceIsRepeated() throws {
    // strace delays the process for one second after it is confined, so the test can stop it there.
    let worker = try RunningWorker(
      ["encode", Fixture("exact-1fps").path, "--output", scratch.path("output"), "--sandbox", "require"]
        + ["--max-decode", "5"],
      under: [
        "strace", "-D", "-f", "-E", "ASAN_OPTIONS=detect_leaks=0", "-o", "/dev/null", "-e", "trace=seccomp", "-e",
        "inject=seccomp:delay_exit=1000000",
      ])
    kill(try #require(try decoder(of: worker, isProbe: true)), SIGSTOP)
    #expect(try worker.wait() == 0)
    let session = try PublishedSession(scratch.path("output/exact-1fps"))
    #expect(session.captured.count == 12 && session.manifests.flatMap(\.refused).isEmpty)
  }

  @Test func framesThatHangTwiceAreRefused() throws {
    let worker = try start(try batch(frames: 3), "output", "--max-decode", "1")
    var stopped: Set<Int32> = []
    while let decoder = try decoder(of: worker, but: stopped) {
      kill(decoder, SIGSTOP)
      stopped.insert(decoder)
    }
    #expect(stopped.count >= 2)
    // If the decoder finished a frame before the test stopped it, the worker publishes a session.
    if try worker.wait() != 65 {
      let session = try PublishedSession(scratch.path("output/slow"))
      let reasons = session.manifests.flatMap(\.refused).map(\.reason)
      #expect(!reasons.isEmpty)
      #expect(reasons.allSatisfy { $0.hasSuffix("decoding takes more than 1 s") }, "\(reasons)")
    }
  }

  /// Decoders inherit the worker's resource limits and work within them.
  @Test(arguments: ["--cpu=300:300", "--as=4000000000:4000000000"])
  func aDecoderTakesNoMoreThanTheWorkerHas(limit: String) throws {
    // This holds for root too, although root may raise limits.
    let result = try Tool.run(
      "prlimit",
      [
        limit, "setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource", EncoderWorker.path, "encode",
        Fixture("exact-1fps").path, "--output", scratch.path("output"), "--sandbox", "require",
      ])
    #expect(result.status == 0, "\(result.errors)")
    #expect(try PublishedSession(scratch.path("output/exact-1fps")).manifests.flatMap(\.refused).isEmpty)
  }

  @Test func decoderEndsWhenItsWorkerDies() throws {
    let worker = try start(try batch(frames: 8), "output")
    let decoder = try #require(try decoder(of: worker))
    worker.signal(SIGKILL)
    _ = try worker.wait()
    var left = 5_000
    while kill(decoder, 0) == 0, field("State", of: decoder)?.hasPrefix("Z") == false, left > 0 {
      usleep(1_000)
      left -= 1
    }
    #expect(left > 0)
  }

  @Test func missingSeccompFailsWithRequireAndWarnsWithAuto() throws {
    func run(_ mode: String) throws -> Tool.Result {
      try Tool.run(
        "strace",
        [
          "-f", "-E", "ASAN_OPTIONS=detect_leaks=0", "-o", "/dev/null", "-e", "trace=seccomp", "-e",
          "inject=seccomp:error=EINVAL", EncoderWorker.path,
          "encode",
          Fixture("exact-1fps").path, "--output", scratch.path(mode), "--sandbox", mode,
        ])
    }
    let required = try run("require")
    #expect(required.status == 75)
    #expect(required.errors.contains("no system call filters (seccomp), which --sandbox require asks for"))
    let auto = try run("auto")
    #expect(auto.status == 0)
    #expect(auto.errors.contains("not confined"))
  }

  private func spool(_ batches: String...) throws -> String {
    let path = scratch.path("spool")
    try FileManager.default.createDirectory(atPath: path + "/incoming", withIntermediateDirectories: true)
    for batch in batches {
      let name = URL(fileURLWithPath: batch).lastPathComponent
      // Hard links save time for the large batches of this test; fixtures are copied.
      let isOurs = batch.hasPrefix(scratch.path)
      try Tool.output("cp", (isOurs ? ["-rl"] : ["-r"]) + [batch, "\(path)/incoming/\(name)"])
    }
    return path
  }

  @Test func drainRetriesWhenADecoderIsKilled() throws {
    let path = try spool(try batch(frames: 8))
    let worker = try RunningWorker(["--spool", path, "--drain", "--sandbox", "require"])
    kill(try #require(try decoder(of: worker)), SIGKILL)
    #expect(try worker.wait() == 0)
    #expect(try PublishedSession(path + "/output/slow").manifests.flatMap(\.frames).count == 8)
  }

  /// The first decoder waits for its session, and may be killed meanwhile.
  @Test func decoderThatIsKilledBeforeItsSessionIsReplaced() throws {
    let path = try spool()
    let log = scratch.path("log")
    let worker = try RunningWorker(
      ["--spool", path, "--sandbox", "require"], environment: ["LOG": log],
      under: ["sh", "-c", #"exec "$0" "$@" 2>"$LOG""#])
    kill(try #require(try decoder(of: worker)), SIGKILL)
    try Tool.output("cp", ["-r", Fixture("exact-1fps").path, path + "/tmp-batch"])
    #expect(rename(path + "/tmp-batch", path + "/incoming/exact-1fps") == 0)
    var left = 6_000
    while left > 0, try !String(contentsOfFile: log, encoding: .utf8).contains("batch.published") {
      usleep(10_000)
      left -= 1
    }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try !String(contentsOfFile: log, encoding: .utf8).contains("batch.failed"))
    #expect(try PublishedSession(path + "/output/exact-1fps").captured.count == 12)
  }

  @Test func lowDiskSpaceStartsNoBatch() throws {
    let path = try spool(Fixture("exact-1fps").path)
    let result = try EncoderWorker.run("--spool", path, "--drain", "--min-free", "9000000000000000000")
    #expect(result.status == 75)
    #expect(result.errors.contains("less than the 9000000000000000000 of --min-free"))
    #expect(try names(in: path + "/incoming") == ["exact-1fps"])
    #expect(try EncoderWorker.run("--spool", path, "--drain", "--min-free", "1").status == 0)
  }
}
