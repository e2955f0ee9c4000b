import Foundation
import TestSupport
import Testing

/// The cost of another batch does not depend on the session's length, and the worker updates views soon after
/// publication.
@Suite struct GrowingSessionTests {
  private static let startMs: Int64 = 1_767_859_512_340

  /// Returns a spool whose output has one session of `count` segments, each one second long.
  private func spool(with count: Int) throws -> TestSpool {
    let spool = try TestSpool()
    let draft = try spool.scratch.directory("walk@0")
    for number in 0..<count {
      let source = Fixture("exact-1fps").path + "/0000.jpg"
      try FileManager.default.copyItem(atPath: source, toPath: draft + "/\(Self.startMs + Int64(number) * 6_000).jpg")
    }
    let run = try EncoderWorker.run("encode", draft, "--output", spool.output)
    try #require(run.status == 0, "\(run.errors)")
    try #require(try PublishedSession(spool.output + "/walk").manifests.count == count)
    return spool
  }

  private func add(_ count: Int, to spool: TestSpool, behind: Int) throws {
    for number in 0..<count {
      try spool.addSmall(
        "walk@\(1_000 + number)", startMs: Self.startMs + Int64(behind) * 6_000 + Int64(number) * 2_000)
    }
  }

  /// Drains the spool under strace. Returns the numbers of open and stat calls on the session, and the bytes of
  /// directory entries read.
  private func calls(of spool: TestSpool, _ options: String...) throws -> (opened: Int, looked: Int, listed: Int) {
    let log = spool.scratch.path("log")
    try Tool.output(
      "strace",
      [
        "-f", "--seccomp-bpf", "-E", "ASAN_OPTIONS=detect_leaks=0", "-e", "trace=file,getdents64", "-e", "signal=none",
        "-o", log,
        EncoderWorker.path, "--spool", spool.path, "--drain", "--jobs", "1", "--sandbox", "off",
      ] + options)
    let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
    let session = lines.filter { $0.contains("/output/walk") }
    let listed = lines.filter { $0.contains("getdents64(") }.compactMap {
      $0.firstMatch(of: /= (\d+)$/).flatMap { Int($0.1) }
    }
    return (
      session.count { $0.contains(/\ open(at|at2)?\(/) }, session.count { $0.contains(/stat/) },
      listed.reduce(0, +)
    )
  }

  /// A worker reads no manifest of an older segment for a new batch; its number of calls does not grow with the
  /// session.
  @Test(.enabled(if: ScratchDirectory.keepsAttributes), arguments: [[], ["--sentry"], ["--hls"], ["--thumbnails"]])
  func costOfABatchIsIndependentOfSessionLength(options: [String]) throws {
    var counted: [(opened: Int, looked: Int, listed: Int)] = []
    let more = Extent.of(10, full: 20)
    for length in [10, Extent.of(60, full: 100)] {
      let spool = try spool(with: length)
      // The first batch makes the worker build its index cache; later batches use the cache.
      try add(1, to: spool, behind: length + 100)
      try #require(try Tool.run(EncoderWorker.path, ["--spool", spool.path, "--drain"] + options).status == 0)
      try add(more, to: spool, behind: length + 200)
      let calls = options.isEmpty ? try calls(of: spool) : try calls(of: spool, options[0])
      counted.append(calls)
      #expect(try EncoderWorker.run("verify", spool.output + "/walk").status == 0)
      let session = try PublishedSession(spool.output + "/walk")
      #expect(session.index.segments.count == length + 1 + more)
      #expect(try spool.isAtRest)
      guard options == ["--hls"] else { continue }
      // Views that the worker extends equal views that it rebuilds.
      let playlist = spool.output + "/walk/hls/session.m3u8"
      let grown = try String(contentsOfFile: playlist, encoding: .utf8)
      try FileManager.default.removeItem(atPath: spool.output + "/walk/hls")
      try add(1, to: spool, behind: length + 200)
      try #require(try Tool.run(EncoderWorker.path, ["--spool", spool.path, "--drain", "--hls"]).status == 0)
      #expect(try String(contentsOfFile: playlist, encoding: .utf8) == grown)
      #expect(grown.components(separatedBy: "#EXTINF:2.000,").count == more + 2)
    }
    // The number of view updates depends on the machine's speed.
    #expect(abs(counted[0].opened - counted[1].opened) <= 100, "\(counted)")
    #expect(abs(counted[0].looked - counted[1].looked) <= 100, "\(counted)")
    // The worker lists the session once before it exits. Listing it for each batch would read 200 000 bytes.
    #expect(abs(counted[0].listed - counted[1].listed) <= 40_000, "\(counted)")
  }

  /// A running worker updates views within a moment of publication, also when no further batch arrives.
  @Test func runningWorkerUpdatesViewsSoonAfterPublication() throws {
    let spool = try spool(with: 10)
    let worker = try spool.start("--sandbox", "off")
    defer { worker.signal(SIGKILL) }
    try add(30, to: spool, behind: 100)
    try spool.waitUntil("session.json lists all segments") {
      try names(in: spool.output + "/walk").count { $0.hasSuffix(".mp4") } == 40
        && PublishedSession(spool.output + "/walk").index.segments.count == 40
    }
    try spool.waitUntil("no marker is left") { (try? names(in: spool.output + "/.behind"))?.isEmpty ?? true }
    #expect(try EncoderWorker.run("verify", spool.output + "/walk").status == 0)
  }

  /// A worker killed before it updates views leaves a marker; the next worker updates the views, even with an empty
  /// queue.
  @Test(.enabled(if: ScratchDirectory.keepsAttributes))
  func viewsNotUpdatedByAKilledWorkerAreUpdatedByTheNext() throws {
    var (lagged, round) = (0, 0)
    // On a slow machine views are rarely out of date.
    while round < 6 || lagged == 0 && round < 40 {
      round += 1
      let spool = try spool(with: 10)
      let worker = try spool.start("--sandbox", "off", "--jobs", "1")
      try add(12, to: spool, behind: 100)
      try spool.waitUntil("the worker published some of the batches") {
        try names(in: spool.output + "/walk").count { $0.hasSuffix(".mp4") } >= 13 + round % 6
      }
      worker.signal(SIGKILL)
      _ = try worker.wait()
      lagged += (try? names(in: spool.output + "/.behind"))?.count ?? 0
      #expect(try spool.drain("--sandbox", "off").status == 0)
      #expect(try PublishedSession(spool.output + "/walk").index.segments.count == 22)
      #expect(try EncoderWorker.run("verify", spool.output + "/walk").status == 0)
      #expect(!FileManager.default.fileExists(atPath: spool.output + "/.behind"))
      #expect(try spool.isAtRest)
    }
    #expect(lagged > 0)
  }

  /// Batches arrive in any order and more than once, also before segments that views already list.
  @Test(arguments: Extent.of(1...2, full: 1...4))
  func batchesInAnyOrderGiveAnIntactSession(seed: Int) throws {
    var random = Random(seed: seed)
    let spool = try spool(with: 9)
    let numbers = Array(0..<30).shuffled(using: &random)
    for chunk in stride(from: 0, to: 30, by: 10) {
      for number in numbers[chunk..<(chunk + 10)] + numbers[0..<(chunk / 5)] {
        try spool.addSmall(
          "walk@\(number)", startMs: Self.startMs + Int64(number) * 7_000 - (number < 15 ? 200_000 : 0),
          frames: [number % 12])
      }
      let run = try spool.drain("--sentry", "--sandbox", "off")
      #expect(run.status == 0, "\(run.errors)")
      let verified = try EncoderWorker.run("verify", spool.output + "/walk")
      #expect(verified.status == 0, "\(verified.text)")
    }
    let session = try PublishedSession(spool.output + "/walk")
    #expect(session.index.frames == session.captured.count)
  }

  /// Many older segments arrive at once while views are out of date. The worker still detects a conflict with a segment
  /// between them.
  @Test(.enabled(if: ScratchDirectory.keepsAttributes))
  func conflictWithASegmentOutsideTheIndexCacheIsRefused() throws {
    let spool = try spool(with: 150)
    // With 70 segments before the last 64, the index cache could drop the segments between.
    let draft = try spool.scratch.directory("walk@early")
    for number in 0..<70 {
      let source = Fixture("exact-1fps").path + "/0001.jpg"
      let instant = Self.startMs - 600_000 + Int64(number) * 6_000
      try FileManager.default.copyItem(atPath: source, toPath: draft + "/\(instant).jpg")
    }
    try spool.addSmall("walk@a", startMs: Self.startMs + 2_000_000)
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/walk@early")
    // Other frames for a time that is already published.
    try spool.addSmall("walk@z", startMs: Self.startMs + 6_000, frames: [5, 6])
    #expect(try spool.drain("--sandbox", "off", "--jobs", "1").status == 65)
    #expect(try spool.names("quarantine") == ["walk@z", "walk@z.reason.json"])
    #expect(try PublishedSession(spool.output + "/walk").index.segments.count == 221)
    #expect(try EncoderWorker.run("verify", spool.output + "/walk").status == 0)
  }

  /// An operator removes a segment while the session grows, as the error message advises.
  @Test func segmentRemovedByAnOperatorDisappearsFromViews() throws {
    let spool = try spool(with: 20)
    try add(2, to: spool, behind: 30)
    try #require(try spool.drain().status == 0)
    for suffix in ["json", "mp4"] {
      try FileManager.default.removeItem(
        atPath: spool.output + "/walk/segment-\(Self.startMs + 19 * 6_000).\(suffix)")
    }
    try add(3, to: spool, behind: 19)
    #expect(try spool.drain(verifying: false).status == 0)
    let videos = try names(in: spool.output + "/walk").filter { $0.hasSuffix(".mp4") }
    #expect(try videos.count == 24 && PublishedSession(spool.output + "/walk").index.segments.map(\.file) == videos)
  }

  /// A process that never releases a session's lock stops neither other sessions nor the worker.
  @Test func lockHeldForEverDoesNotStopTheWorker() throws {
    let spool = try spool(with: 10)
    try FileManager.default.createDirectory(atPath: spool.output + "/.behind", withIntermediateDirectories: true)
    try Data().write(to: URL(fileURLWithPath: spool.output + "/.behind/walk"))
    let directory = open(spool.output + "/walk", O_RDONLY | O_DIRECTORY)
    try #require(flock(directory, LOCK_EX) == 0)
    try spool.add("exact-1fps")
    // Another process owns the marker; the worker has no other work left.
    let run = try spool.drain("--sandbox", "off")
    #expect(
      run.status == 0 && run.errors.contains("session=walk error=\"another process holds its lock\""), "\(run.errors)")
    #expect(try PublishedSession(spool.output + "/exact-1fps").manifests.count == 3)
    close(directory)
    #expect(try spool.drain().status == 0)
    #expect(!FileManager.default.fileExists(atPath: spool.output + "/.behind"))
  }
}
