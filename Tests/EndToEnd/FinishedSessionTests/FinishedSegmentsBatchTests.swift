import Foundation
import TestSupport
import Testing

/// Finished segments are a batch like others: of a spool, over HTTP, of `enqueue`, `film` and a dry run.
@Suite struct FinishedSegmentsBatchTests {
  private let spool: TestSpool
  private let folder: SegmentFolder
  private static let start = SegmentFolder.startMs

  private var scratch: ScratchDirectory { spool.scratch }

  init() throws {
    spool = try TestSpool()
    folder = try SegmentFolder(in: spool.scratch)
  }

  /// Writes videos and their events, as an SDK of Sentry uploads them: `0.mp4`, `0.json`, `1.mp4` …
  private func upload(_ count: Int = 2) throws {
    try folder.video("0.mp4")
    for segment in 0..<count {
      if segment > 0 { try folder.copy("0.mp4", as: "\(segment).mp4") }
      try folder.write("\(segment).json", SegmentFolder.event(segment, atMs: Int64(segment) * 5_000))
    }
  }

  private func archive(_ name: String) throws -> String {
    let path = scratch.path(name)
    if name.hasSuffix(".zip") {
      try Tool.output("/usr/bin/python3", ["-m", "zipfile", "-c", path, folder.path])
    } else {
      try Tool.output("tar", ["-C", scratch.path(""), "-caf", path, "replay"])
    }
    return path
  }

  /// Expects the session that `encode` makes of the folder.
  private func expectTheSession(_ path: String) throws {
    let session = (path as NSString).lastPathComponent
    let other = scratch.path("undisturbed-\(UUID().uuidString)")
    let result = try EncoderWorker.run("encode", folder.path, "--session", session, "-o", other)
    try #require(result.status == 0, "\(result.errors)")
    let difference = try Tool.run("diff", ["-r", "--exclude=session.ffconcat", "\(other)/\(session)", path])
    #expect(difference.text == "")
  }

  // MARK: - A spool

  @Test(arguments: ["a@1", "a@1.zip", "a@1.tar", "a@1.tar.gz"])
  func spoolPublishesWhatEncodeDoes(name: String) throws {
    try upload()
    let path = name == "a@1" ? folder.path : try archive(name)
    try FileManager.default.copyItem(atPath: path, toPath: spool.path + "/incoming/" + name)
    let result = try spool.drain()
    #expect(
      result.status == 0 && result.errors.contains("1 batch published, 2 segments, 10 frames"), "\(result.errors)")
    try expectTheSession(spool.output + "/a")
    #expect(try spool.isAtRest)
    // Later segments continue the session.
    try folder.copy("0.mp4", as: "\(Self.start + 30_000).mp4")
    try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/a@2")
    #expect(try spool.drain().status == 0)
    #expect(
      try PublishedSession(spool.output + "/a").manifests.map { $0.startMs - Self.start } == [0, 5_000, 30_000])
  }

  @Test func videosWithoutATimeAreQuarantinedWithTheWayOut() throws {
    try upload()
    for name in ["0.json", "1.json"] { try FileManager.default.removeItem(atPath: folder.file(name)) }
    try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/a")
    #expect(try spool.drain().status == 65)
    let reason = try spool.reason("a")
    #expect(reason.cause == "no known format: '0.mp4' is an MP4 video (2 files end in .mp4)")
    #expect(
      reason.advice
        == "if these are finished segments, name each <unix ms of its first picture>.mp4, or put Sentry's video events beside them"
    )
    #expect(try spool.names("quarantine/a") == ["0.mp4", "1.mp4"])
  }

  @Test func refusedVideoStopsNoOtherAndMostOfThemKeepTheBatch() throws {
    try upload(3)
    try folder.write("1.mp4", "no video")
    try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/a")
    #expect(try spool.drain().status == 0)
    #expect(try PublishedSession(spool.output + "/a").manifests.count == 2)
    try folder.write("2.mp4", "no video")
    try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/b")
    #expect(try spool.drain().status == 65)
    #expect(try spool.reason("b").cause.contains("2 of 3 videos are not shown; the first, 1.mp4: "))
    #expect(try PublishedSession(spool.output + "/b").manifests.count == 1)
    let accepted = try EncoderWorker.run("quarantine", "retry", "b", "--accept", "--spool", spool.path)
    #expect(accepted.status == 0, "\(accepted.errors)")
    #expect(try spool.drain().status == 0 && spool.names("quarantine").isEmpty)
    try folder.write("0.mp4", "no video")
    try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/c")
    #expect(try spool.drain().status == 65)
    #expect(try spool.reason("c").cause.hasPrefix("none of its 3 videos can be copied; 0.mp4: "))
  }

  @Test func otherContentForPublishedTimeKeepsTheBatch() throws {
    try upload()
    try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/a@1")
    #expect(try spool.drain().status == 0)
    let before = try snapshot(of: spool.output + "/a")
    try folder.video("1.mp4", frames: 4)
    try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/a@2")
    #expect(try spool.drain().status == 65)
    #expect(try spool.reason("a@2").cause.contains("1 of 2 videos are not shown; the first, 1.mp4: "))
    #expect(try snapshot(of: spool.output + "/a") == before)
  }

  @Test func killedWorkerIsContinued() throws {
    try upload(12)
    try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/a")
    var random = Random(seed: 2)
    var kills = 0
    for round in 0..<Extent.of(4, full: 40) {
      let worker = try RunningWorker(["--spool", spool.path, "--drain"])
      usleep(UInt32(random.int(1...400)) * 1_000)
      worker.signal(SIGKILL)
      if try worker.wait() != 0 { kills += 1 }
      // A batch that kills workers is quarantined.
      if round % 2 == 1 {
        #expect(try spool.drain().status == 0)
        try expectTheSession(spool.output + "/a")
        try FileManager.default.removeItem(atPath: spool.output + "/a")
        try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/a")
      }
    }
    #expect(kills > 0)
    #expect(try spool.drain().status == 0)
    try expectTheSession(spool.output + "/a")
    #expect(try spool.isAtRest)
  }

  @Test func finalBatchEndsItsSession() throws {
    try upload()
    let result = try EncoderWorker.run("encode", folder.path, "--final", "-o", scratch.path("out"))
    #expect(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("out/replay"))
    #expect(session.index.complete && session.manifests.map(\.final) == [false, true])
  }

  // MARK: - Producers

  @Test func bodyOfVideosIsTakenOverHTTP() throws {
    try upload()
    let body = try Data(contentsOf: URL(fileURLWithPath: archive("b.tar.gz")))
    let ingest = try RunningIngest(["--spool", spool.path])
    #expect(try ingest.send("PUT", "/v1/batches/b@1.tar.gz", body: body).status == 201)
    try spool.waitUntil("published") { try spool.names("output/b").contains("session.json") }
    for name in ["0.json", "1.json"] { try FileManager.default.removeItem(atPath: folder.file(name)) }
    let bare = try Data(contentsOf: URL(fileURLWithPath: archive("bare.zip")))
    let refused = try ingest.send("PUT", "/v1/batches/c@1.zip", body: bare)
    #expect(refused.status == 422 && refused.text.contains("name each <unix ms of its first picture>.mp4"))
    #expect(ingest.stop() == 0)
    for segment in 0..<2 {
      try folder.write("\(segment).json", SegmentFolder.event(segment, atMs: Int64(segment) * 5_000))
    }
    try expectTheSession(spool.output + "/b")
  }

  @Test func folderIsEnqueued() throws {
    try upload()
    let result = try EncoderWorker.run("enqueue", "--spool", spool.path, "--session", "e", folder.path)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try spool.names("incoming/e@\(Self.start)") == ["0.json", "0.mp4", "1.json", "1.mp4"])
    #expect(try spool.drain().status == 0)
    try expectTheSession(spool.output + "/e")
    let timed = try EncoderWorker.run("enqueue", "--spool", spool.path, "--interval", "500", folder.path)
    #expect(timed.status == 65 && timed.errors.contains("finished segments have times of their own"))
  }

  // MARK: - Commands

  @Test func filmIsThatOfStitch() throws {
    try upload()
    let film = folder.file("film.mp4")
    // The film of a call before is no segment of the next.
    for _ in 0..<2 {
      let result = try EncoderWorker.run("film", folder.path, "--to", film)
      #expect(result.status == 0 && result.errors == "", "\(result.errors)")
    }
    try FileManager.default.moveItem(atPath: film, toPath: scratch.path("film.mp4"))
    #expect(try EncoderWorker.run("film", archive("r.zip"), "--to", scratch.path("zip.mp4")).status == 0)
    #expect(try EncoderWorker.run("stitch", folder.path, "--to", scratch.path("stitched.mp4")).status == 0)
    let films = try ["film", "zip", "stitched"].map {
      try Data(contentsOf: URL(fileURLWithPath: scratch.path($0 + ".mp4")))
    }
    #expect(films[0] == films[1] && films[0] == films[2])
    #expect(try Probe(scratch.path("film.mp4")).packets(of: 0).count == 10)
    #expect(try EncoderWorker.run("film", folder.path, "--to", scratch.path("film.gif")).status == 0)
    let canvas = try EncoderWorker.run("film", folder.path, "--canvas", "64x64", "--to", film)
    #expect(canvas.status == 65 && canvas.errors.contains("its pictures are coded already, and keep their size"))
    #expect(!FileManager.default.fileExists(atPath: film))
  }

  @Test func dryRunShowsVideosTimesGapsAndRefusals() throws {
    try upload()
    try folder.write("1.json", SegmentFolder.event(1, atMs: 9_000))
    try folder.write("2.mp4", "no video")
    try folder.write("2.json", SegmentFolder.event(2, atMs: 20_000))
    let result = try EncoderWorker.run("encode", folder.path, "--dry-run")
    #expect(result.status == 0, "\(result.errors)")
    #expect(
      result.text.hasPrefix(
        "replay: finished segments (2 videos), session replay, 10 frames, 14.0 s, 2 segments, 1 gap, 1 refused\n"))
    #expect(result.text.contains("\n  gap                             4000\n"))
    #expect(result.text.contains("\n  refused 2.mp4: it cannot be read: "))
    let none = try EncoderWorker.run("encode", folder.path, "--dry-run", "--times", "mtime")
    #expect(none.status == 65 && none.text.contains("would be quarantined"))
  }

  /// Most names decide.
  @Test(arguments: [0, 3]) func recordingsBesidePicturesAreNoBatch(untimed: Int) throws {
    let pictures = try scratch.directory("pictures")
    for second in 0..<2 {
      try FileManager.default.copyItem(
        atPath: Fixture("exact-1fps").path + "/000\(second).jpg",
        toPath: "\(pictures)/\(Self.start + Int64(second) * 1_000).jpg")
    }
    try folder.video("0.mp4", frames: 1)
    try FileManager.default.copyItem(atPath: folder.file("0.mp4"), toPath: "\(pictures)/\(Self.start).mp4")
    for number in 0..<untimed {
      try FileManager.default.copyItem(atPath: folder.file("0.mp4"), toPath: "\(pictures)/part-\(number).mp4")
    }
    let packed = scratch.path("pictures.tar")
    try Tool.output("tar", ["-C", pictures, "-cf", packed, "."])
    for (index, batch) in [pictures, packed].enumerated() {
      let result = try EncoderWorker.run("encode", batch, "-o", scratch.path("out-\(index)"), "--json")
      #expect(result.status == 0 && result.text.contains("\"refused\":[]"), "\(result.text) \(result.errors)")
      let session = try PublishedSession(scratch.path("out-\(index)/pictures"))
      #expect(session.captured.count == 2 && session.manifests[0].frames[0].source.hasSuffix(".jpg"))
    }
  }
}
