import FileSystem
import Foundation
import TestSupport
import Testing

@Suite struct SpoolTests {
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  @Test func missingSpoolIsCreated() throws {
    let path = spool.scratch.path("deep/er/spool")
    let result = try EncoderWorker.run("--spool", path, "--drain")
    #expect(result.status == 0)
    #expect(try Set(names(in: path)).isSuperset(of: ["incoming", "tmp", "quarantine"]))
  }

  @Test func batchesArePublishedAsSessionsAndRemoved() throws {
    try spool.add("exact-1fps")
    try spool.add("jittered", as: "walk@1")
    let result = try spool.drain()
    #expect(result.status == 0)
    #expect(try spool.isAtRest)
    #expect(try names(in: spool.output) == [".staging", "exact-1fps", "walk"])
    let session = try PublishedSession(spool.output + "/exact-1fps")
    #expect(session.manifests.map(\.durationMs) == [5_000, 5_000, 2_000])
    #expect(session.index.complete)
    let manifest = try String(contentsOfFile: session.path + "/segment-1767859512340.json", encoding: .utf8)
    #expect(manifest.contains(#""metadata":{"app":{"build":45,"version":"1.2.3"},"device":"Fixture 1","ratio":0.1}"#))
  }

  /// A batch with two good screens and a third whose only picture is broken; then a batch of broken pictures only.
  @Test func batchWithOneBrokenScreenPublishesTheOthersAndLogsIt() throws {
    for (name, screens) in [("desk@1", ["1", "2", "3"]), ("broken@1", ["3"])] {
      let draft = try spool.scratch.directory("spool/tmp/" + name)
      for screen in screens {
        let image = screen == "3" ? Array("no image".utf8) : try Fixture("exact-1fps").bytes("0000.jpg")
        try spool.scratch.file("spool/tmp/\(name)/1767859512340_m\(screen).jpg", image)
      }
      try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/" + name)
    }
    let result = try spool.drain("--keep-batches")
    #expect(result.status == 65)
    #expect(try names(in: spool.output).filter { !$0.hasPrefix(".") } == ["desk.m1", "desk.m2"])
    // The batch stays as it came: its third screen is not published.
    #expect(try spool.names("done") == [])
    #expect(try Set(spool.causes().keys) == ["broken@1", "desk@1"])
    #expect(result.errors.contains(#"frame="session desk.m3""#), "\(result.errors)")
    // A retry publishes nothing twice; an accepted one is finished.
    try retry("desk@1")
    #expect(try spool.drain().status == 65)
    try retry("desk@1", "--accept")
    #expect(try spool.drain("--keep-batches").status == 0)
    #expect(try spool.names("done") == ["desk@1"] && spool.names("quarantine") == ["broken@1", "broken@1.reason.json"])
  }

  private func retry(_ name: String, _ options: String...) throws {
    let words = ["quarantine", "retry", "--spool", spool.path] + options + ["--", name]
    let result = try Tool.run(EncoderWorker.path, words)
    try #require(result.status == 0, "\(result.errors)")
  }

  /// One name that looks like another recorder's must not cost the others: most of the batch would be removed with it.
  @Test func batchThatLosesMostPicturesIsKeptAndPublishedOnRequest() throws {
    let draft = try spool.scratch.directory("spool/tmp/hall@1")
    let image = try Fixture("exact-1fps").bytes("0000.jpg")
    for name in (0..<4).map({ "shot \($0).jpg" }) + ["1767859512000.jpg"] {
      try spool.scratch.file("spool/tmp/hall@1/" + name, image)
    }
    let before = try snapshot(of: draft).mapValues(\.bytes)
    try FileManager.default.moveItem(atPath: draft, toPath: spool.path + "/incoming/hall@1")
    for _ in 0..<2 {
      #expect(try spool.drain().status == 65)
      #expect(try snapshot(of: spool.path + "/quarantine/hall@1").mapValues(\.bytes) == before)
      let reason = try spool.reason("hall@1")
      #expect(reason.cause.hasPrefix("4 of 5 pictures would not be shown; 4 of these, the first shot 0.jpg: "))
      let command = "encoder-worker quarantine retry --spool \(spool.path.shellWord) --accept -- hall@1"
      #expect(reason.advice.hasSuffix("; or publish it as it is: " + command))
      #expect(try !names(in: spool.output).contains("hall"))
      try retry("hall@1")
    }
    #expect(try spool.drain().status == 65)
    try retry("hall@1", "--accept")
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest && spool.names("quarantine").isEmpty)
    #expect(try PublishedSession(spool.output + "/hall").captured.count == 1)
    // A batch of which nothing can be shown is not accepted.
    try spool.add(file: "broken.tar", Array("no archive".utf8))
    #expect(try spool.drain().status == 65)
    let result = try EncoderWorker.run("quarantine", "retry", "--spool", spool.path, "--accept", "broken.tar")
    #expect(result.status != 0 && result.errors.contains("without --accept"), "\(result.errors)")
    #expect(try spool.names("quarantine").contains("broken.tar"))
  }

  @Test func theSameBatchAgainChangesNothing() throws {
    try spool.add("gap")
    try spool.add("rotation")
    #expect(try spool.drain().status == 0)
    let before = try snapshot(of: spool.output)
    try spool.add("gap", as: "another-name")
    try spool.add("rotation")
    let result = try spool.drain("--quality", "small")
    #expect(result.status == 0)
    #expect(result.errors.contains("0 batches published, 0 segments, 0 frames, 2 published before"))
    #expect(try spool.isAtRest)
    #expect(try snapshot(of: spool.output) == before)
    #expect(try spool.drain().status == 0)
    #expect(try snapshot(of: spool.output) == before)
  }

  @Test func sameInputSameBytes() throws {
    for fixture in Fixture.all {
      for output in ["one", "two"] {
        let result = try EncoderWorker.run(
          "encode", fixture.path, "--session", fixture.name, "--output", spool.scratch.path(output))
        #expect(result.status == 0)
      }
    }
    let difference = try Tool.run("diff", ["-r", spool.scratch.path("one"), spool.scratch.path("two")])
    #expect(difference.text == "")
  }

  @Test func twoWorkersPublishEachBatchOnce() throws {
    for number in 0..<200 {
      try spool.addSmall("s\(number % 20)@\(number)", startMs: 1_767_859_512_340 + Int64(number) * 2_000)
    }
    let one = try spool.start("--drain", "--keep-batches")
    let two = try spool.start("--drain", "--keep-batches")
    #expect(try one.wait() == 0)
    #expect(try two.wait() == 0)
    #expect(try spool.isAtRest)
    #expect(try spool.names("done").count == 200)
    #expect(try spool.names("quarantine").isEmpty)
    var batches: [String] = []
    for session in 0..<20 {
      let published = try PublishedSession(spool.output + "/s\(session)")
      #expect(published.index.segments.map(\.startMs) == published.manifests.map(\.startMs))
      batches += published.manifests.map(\.batch)
    }
    #expect(batches.count == 200)
    #expect(Set(batches).count == 200)

    let before = try snapshot(of: spool.output)
    for name in try spool.names("done") {
      try FileManager.default.moveItem(atPath: spool.path + "/done/" + name, toPath: spool.path + "/incoming/" + name)
    }
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest)
    #expect(try snapshot(of: spool.output) == before)
  }

  /// Two names for one batch at the same time: one worker publishes it, the other finds a duplicate.
  @Test func oneBatchUnderTwoNamesAtOnceIsPublishedOnce() throws {
    for number in 0..<8 { try spool.add("jittered", as: "walk@\(number)") }
    let result = try spool.drain("--jobs", "8")
    #expect(result.status == 0)
    #expect(result.errors.contains("1 batch published, 3 segments, 11 frames, 7 published before"))
    #expect(try PublishedSession(spool.output + "/walk").manifests.count == 3)
  }

  /// A worker died between two manifests, and the settings have changed since.
  @Test func halfPublishedBatchIsCompleted() throws {
    try spool.add("exact-1fps")
    #expect(try spool.drain().status == 0)
    let whole = try snapshot(of: spool.output).mapValues(\.bytes)
    let session = spool.output + "/exact-1fps"
    for options in [[], ["--max-hold", "700"]] {
      for file in ["segment-1767859522340.json", "session.json", "session.ffconcat"] {
        try? FileManager.default.removeItem(atPath: session + "/" + file)
      }
      try spool.add("exact-1fps")
      #expect(try Tool.run(EncoderWorker.path, ["--spool", spool.path, "--drain"] + options).status == 0)
      #expect(try spool.isAtRest)
      if options.isEmpty { #expect(try snapshot(of: spool.output).mapValues(\.bytes) == whole) }
    }
    let published = try PublishedSession(session)
    #expect(published.manifests.count == 12)
    #expect(published.manifests.allSatisfy { $0.durationMs == 700 })
    #expect(try names(in: session).filter { $0.hasSuffix(".mp4") }.count == 12)
  }

  @Test func failedRemovalOfSupersededFilesIsLoggedAndDoesNotFailADrain() throws {
    let spool = try TestSpool()
    try spool.addSmall("walk", startMs: 1_767_859_512_340)
    #expect(try spool.drain("--hls").status == 0)
    // A directory in the place of a file cannot be removed.
    let name = "init-1x1-aaaaaaaa.mp4"
    for path in ["/.superseded", "/walk/hls/" + name] {
      try FileManager.default.createDirectory(atPath: spool.output + path, withIntermediateDirectories: true)
    }
    try Data("1000 \(name)\n".utf8).write(to: URL(fileURLWithPath: spool.output + "/.superseded/walk"))
    let drain = try spool.drain("--hls", verifying: false)
    #expect(drain.status == 0 && drain.errors.contains("session.outdated"), "\(drain.status): \(drain.errors)")
  }

  /// The next batch of the session removes videos that a dead worker linked without manifests.
  @Test func videosWithoutManifestsAreRemovedWithTheNextBatch() throws {
    try spool.add("exact-1fps")
    _ = try spool.scratch.directory("spool/output/exact-1fps")
    for name in ["segment-1767859512340.mp4", "segment-1767859500000.mp4"] {
      try spool.scratch.file("spool/output/exact-1fps/" + name, [1, 2, 3])
    }
    #expect(try spool.drain().status == 0)
    let session = try PublishedSession(spool.output + "/exact-1fps")
    #expect(try names(in: session.path).filter { $0.hasSuffix(".mp4") } == session.manifests.map(\.file))
    #expect(
      try Tool.output("sha256sum", [session.video(session.manifests[0])]).prefix(64)
        == Data(session.manifests[0].sha256.utf8))
  }

  /// A plain directory walk cannot remove this published batch; it must not affect later batches.
  @Test func batchWithAnyContentsCanBeRetired() throws {
    try spool.add("single-frame", as: "walk@1")
    let batch = spool.path + "/incoming/walk@1"
    let raw: [CChar] = Array((batch + "/").utf8).map { CChar(bitPattern: $0) } + [-1, 0]
    #expect(mkdir(raw, 0o755) == 0)
    let inside: [CChar] = Array(raw[..<(raw.count - 1)]) + Array("/file".utf8).map { CChar(bitPattern: $0) } + [0]
    close(open(inside, O_CREAT | O_WRONLY, 0o644))
    // The path is longer than the maximum length of a path.
    try Tool.output(
      "sh",
      ["-c", "cd \"$0\" && for i in $(seq 60); do mkdir $(printf %0200d $i) && cd -P $(printf %0200d $i); done", batch])
    try spool.add("exact-1fps")
    #expect(try spool.drain().status == 0)
    #expect(try spool.isAtRest)
    #expect(try spool.drain().status == 0)
  }

  @Test func incompleteBatchStays() throws {
    try spool.add("single-frame", as: ".hidden")
    try spool.add("single-frame", as: "x.tmp")
    try spool.add("single-frame", as: "y.part")
    #expect(try spool.drain().status == 0)
    #expect(try spool.names("incoming") == [".hidden", "x.tmp", "y.part"])
    #expect(!FileManager.default.fileExists(atPath: spool.output + "/x.tmp"))
  }

  /// A session's name can equal the name of any of the spool's directories.
  @Test(arguments: ["", "/", "/incoming", "/claimed/x"]) func outputOverSpoolDirectoryIsRefused(output: String) throws {
    try spool.add("single-frame")
    #expect(try spool.drain("--output", spool.path + output).status == 64)
    #expect(try spool.names("incoming") == ["single-frame"])
  }

  /// A worker whose claim directory was deleted exits instead of failing in a loop.
  @Test func workerWhoseClaimDirectoryIsDeletedExits() throws {
    let worker = try spool.start()
    try spool.waitUntil("the claim directory exists") { try spool.names("claimed").contains { !$0.hasPrefix(".") } }
    try FileManager.default.removeItem(atPath: spool.path + "/claimed/" + spool.names("claimed")[0])
    try spool.add("single-frame")
    #expect(try worker.wait() == 75)
    #expect(try spool.drain().status == 0)
    #expect(FileManager.default.fileExists(atPath: spool.output + "/single-frame/session.json"))
  }

  @Test func publishedBatchesAreKeptOnRequest() throws {
    try spool.add("odd-size")
    try spool.drain("--keep-batches")
    try spool.add("odd-size")
    try spool.drain("--keep-batches")
    #expect(try spool.names("done") == ["odd-size", "odd-size.2"])
    let difference = try Tool.run("diff", ["-r", Fixture("odd-size").path, spool.path + "/done/odd-size.2"])
    #expect(difference.status == 0)
  }

  @Test func batchesInAnyOrderJoinWithoutGaps() throws {
    let start: Int64 = 1_767_859_512_340
    // Two seconds each. The second begins 400 ms early; the third begins 300 ms late and arrives first.
    try spool.addSmall("s@c", startMs: start + 1_600 + 2_300, frames: [4, 5])
    #expect(try spool.drain().status == 0)
    try spool.addSmall("s@b", startMs: start + 1_600, frames: [2, 3])
    try spool.addSmall("s@a", startMs: start, frames: [0, 1])
    #expect(try spool.drain().status == 0)
    let session = try PublishedSession(spool.output + "/s")
    #expect(session.index.gaps.isEmpty)
    #expect(session.manifests.count == 3)
    let film = spool.scratch.path("film.mp4")
    try stitch(session.path, to: film)
    let pts = try Probe(film).packets(of: 0).map(\.pts)
    for frame in session.captured { #expect(pts.contains((frame.timeMs - start) * 90)) }
    #expect(pts == pts.sorted())
  }

  @Test func batchThatOverlapsPublishedTimeIsQuarantined() throws {
    let start: Int64 = 1_767_859_512_340
    try spool.addSmall("s@a", startMs: start)
    #expect(try spool.drain().status == 0)
    let before = try snapshot(of: spool.output)
    try spool.addSmall("s@same-start", startMs: start, frames: [2, 3])
    try spool.addSmall("s@inside", startMs: start + 1_200)
    try spool.addSmall("s@before", startMs: start - 1_400)
    let result = try spool.drain("--jobs", "1")
    #expect(result.status == 65)
    #expect(try snapshot(of: spool.output) == before)
    #expect(
      try spool.names("quarantine").filter { !$0.hasSuffix(".reason.json") } == [
        "s@before", "s@inside", "s@same-start",
      ])
    let reason = try String(contentsOfFile: spool.path + "/quarantine/s@inside.reason.json", encoding: .utf8)
    #expect(reason.contains("overlaps segment-1767859512340.mp4"))
  }

  @Test func workerFindsNewBatchesThroughInotify() throws {
    let worker = try spool.start()
    let opened = "/proc/\(worker.processIdentifier)/fdinfo"
    try spool.waitUntil("the worker has an inotify watch") {
      try FileManager.default.contentsOfDirectory(atPath: opened).contains {
        (try? String(contentsOfFile: "\(opened)/\($0)", encoding: .utf8))?.contains("inotify") == true
      }
    }
    try spool.add("single-frame", as: "live@1")
    try spool.waitUntil("the batch is published") {
      FileManager.default.fileExists(atPath: spool.output + "/live/session.ffconcat")
    }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try spool.isAtRest)
  }
}
