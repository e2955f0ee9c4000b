import Foundation
import JSON
import TestSupport
import Testing

/// The Sentry event of each segment.
@Suite struct SentryTests {
  private struct Event: Decodable, Equatable {
    struct Data: Decodable, Equatable {
      let tag: String
      let payload: Payload
    }
    struct Payload: Decodable, Equatable {
      let segmentId: Int
      let size: Int
      let duration: Int64
      let encoding: String
      let container: String
      let height: Int
      let width: Int
      let frameCount: Int
      let frameRateType: String
      let frameRate: Int
      let left: Int
      let top: Int
    }

    let type: Int
    let timestamp: Int64
    let data: Data
  }

  private static let start: Int64 = 1_767_859_512_340

  private func events(in session: String) throws -> [String] {
    try names(in: session).filter { $0.hasSuffix(".sentry.json") }
  }

  private func event(_ startMs: Int64, in session: String) throws -> Event {
    let file = session + "/segment-\(startMs).sentry.json"
    return try JSONDecoder().decode(Event.self, from: Data(contentsOf: URL(fileURLWithPath: file)))
  }

  /// Returns each segment's ordinal, by its start.
  private func ordinals(in session: String) throws -> [Int64: Int] {
    let starts = try events(in: session).compactMap { Int64($0.dropFirst(8).prefix(13)) }
    return try Dictionary(
      uniqueKeysWithValues: starts.map { ($0, try event($0, in: session).data.payload.segmentId) })
  }

  /// Returns the number of segments in session.json. Their events exist by then.
  private func listed(in session: String) throws -> Int {
    FileManager.default.fileExists(atPath: session + "/session.json")
      ? try PublishedSession(session).index.segments.count : 0
  }

  /// Returns the names of an object's members. Sentry rejects missing and additional members.
  private func members(_ value: JSONValue?) throws -> Set<String> { Set(try #require(value?.object).keys) }

  @Test(arguments: Fixture.sample)
  func eventMatchesItsSegmentsManifestAndFile(fixture: Fixture) throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(fixture, into: scratch, "--sentry")
    #expect(
      try events(in: session.path) == session.manifests.map { "segment-\($0.startMs).sentry.json" })
    for (ordinal, manifest) in session.manifests.enumerated() {
      let event = try event(manifest.startMs, in: session.path)
      let probe = try Probe(session.video(manifest))
      #expect(event.type == 5)
      #expect(event.timestamp == manifest.startMs)
      #expect(event.data.tag == "video")
      let payload = event.data.payload
      #expect(payload.segmentId == ordinal)
      #expect(try payload.size == Data(contentsOf: URL(fileURLWithPath: session.video(manifest))).count)
      #expect(payload.duration == manifest.durationMs)
      #expect(probe.streams.allSatisfy { $0.durationTs == payload.duration * 90 && $0.startPts == 0 })
      #expect(try Double(#require(probe.format.duration)) == Double(payload.duration) / 1_000)
      #expect((payload.encoding, payload.container) == (probe.streams[0].codecName, "mp4"))
      #expect((payload.width, payload.height) == (manifest.width, manifest.height))
      #expect(payload.frameCount == manifest.frames.count)
      #expect(payload.frameRateType == "variable")
      #expect(payload.frameRate == max(1, Int((1_000 / Double(manifest.intervalMs)).rounded())))
      #expect((payload.left, payload.top) == (0, 0))

      let file = session.path + "/segment-\(manifest.startMs).sentry.json"
      let json = try JSONParser.parse(Array(Data(contentsOf: URL(fileURLWithPath: file))))
      let data = json.object?["data"]
      #expect(try members(json) == ["type", "timestamp", "data"])
      #expect(try members(data) == ["tag", "payload"])
      #expect(
        try members(data?.object?["payload"]) == [
          "segmentId", "size", "duration", "encoding", "container", "height", "width", "frameCount", "frameRateType",
          "frameRate", "left", "top",
        ])
    }
    #expect(try EncoderWorker.run("verify", session.path).status == 0)
  }

  /// No reader of a session or of its segments reads the events.
  @Test func sentryOptionChangesNoOtherFile() throws {
    let (plain, told) = (try ScratchDirectory(), try ScratchDirectory())
    let without = try EncoderWorker.encode(Fixture("gap"), into: plain)
    let with = try EncoderWorker.encode(Fixture("gap"), into: told, "--sentry")
    #expect(try events(in: without.path).isEmpty)
    let files = try snapshot(of: with.path).mapValues(\.bytes)
    #expect(
      try files.filter { !$0.key.hasSuffix(".sentry.json") } == snapshot(of: without.path).mapValues(\.bytes))
    for format in ["mp4", "hls"] {
      let (one, other) = (plain.path(format), told.path(format))
      #expect(try EncoderWorker.run("stitch", without.path, "--to", one, "--format", format).status == 0)
      #expect(try EncoderWorker.run("stitch", with.path, "--to", other, "--format", format).status == 0)
      #expect(try Tool.run("diff", ["-r", one, other]).status == 0)
    }
    #expect(try EncoderWorker.run("reencode", with.path, "-o", told.path("small"), "-q", "small").status == 0)
    #expect(try events(in: told.path("small/gap")).isEmpty)
  }

  @Test func earlierBatchRenumbersLaterSegments() throws {
    let spool = try TestSpool()
    let session = spool.output + "/walk"
    let starts = [0, 2_000, 4_000].map { Self.start + $0 }
    try spool.addSmall("walk@3", startMs: starts[2])
    #expect(try spool.drain("--sentry").status == 0)
    #expect(try ordinals(in: session) == [starts[2]: 0])
    try spool.addSmall("walk@1", startMs: starts[0])
    #expect(try spool.drain("--sentry").status == 0)
    #expect(try ordinals(in: session) == [starts[0]: 0, starts[2]: 1])
    let first = try snapshot(of: session)["segment-\(starts[0]).sentry.json"]
    // A worker without `--sentry` updates events that exist.
    try spool.addSmall("walk@2", startMs: starts[1])
    #expect(try spool.drain().status == 0)
    #expect(try ordinals(in: session) == [starts[0]: 0, starts[1]: 1, starts[2]: 2])
    #expect(try snapshot(of: session)["segment-\(starts[0]).sentry.json"] == first)
    #expect(try EncoderWorker.run("verify", session).status == 0)
  }

  /// One worker encodes all batches and caches the events that it wrote.
  @Test func runningWorkerRenumbersAndRepairsItsEvents() throws {
    let spool = try TestSpool()
    let session = spool.output + "/walk"
    let worker = try spool.start("--sentry", "--jobs", "1")
    let starts = [0, 2_000, 4_000, 6_000].map { Self.start + $0 }
    let file = session + "/segment-\(starts[1]).sentry.json"
    for (number, start) in [starts[1], starts[3], starts[0]].enumerated() {
      try spool.addSmall("walk@\(number)", startMs: start)
      try spool.waitUntil("session.json lists \(number + 1) segments") { try listed(in: session) == number + 1 }
    }
    #expect(try ordinals(in: session) == [starts[0]: 0, starts[1]: 1, starts[3]: 2])
    // The test changes one event and deletes another.
    try Data("{}".utf8).write(to: URL(fileURLWithPath: file))
    try FileManager.default.removeItem(atPath: session + "/segment-\(starts[0]).sentry.json")
    try spool.addSmall("walk@4", startMs: starts[2])
    try spool.waitUntil("session.json lists all segments") { try listed(in: session) == 4 }
    worker.signal(SIGTERM)
    #expect(try worker.wait() == 0)
    #expect(try ordinals(in: session) == Dictionary(uniqueKeysWithValues: zip(starts, 0...)))
    #expect(try EncoderWorker.run("verify", session).status == 0)
  }

  @Test func theSameBatchAgainChangesNothing() throws {
    let spool = try TestSpool()
    for batch in ["exact-1fps", "gap"] { try spool.add(batch) }
    #expect(try spool.drain("--sentry").status == 0)
    let before = try snapshot(of: spool.output)
    for batch in ["exact-1fps", "gap"] { try spool.add(batch, as: batch + ".again") }
    #expect(try spool.drain("--sentry").status == 0)
    #expect(try snapshot(of: spool.output) == before)
  }

  /// The producer sends a batch again after the operator has enabled `--sentry`.
  @Test func duplicateBatchAddsTheEventsOfTheWholeSession() throws {
    let spool = try TestSpool()
    for (number, start) in [Self.start, Self.start + 2_000].enumerated() {
      try spool.addSmall("walk@\(number)", startMs: start)
    }
    #expect(try spool.drain().status == 0)
    let session = spool.output + "/walk"
    #expect(try events(in: session).isEmpty)
    try spool.addSmall("walk@again", startMs: Self.start)
    #expect(try spool.drain("--sentry").status == 0)
    #expect(try ordinals(in: session) == [Self.start: 0, Self.start + 2_000: 1])
  }

  /// Noise of 1920 × 1920 pixels; at full quality a picture has about 3 MB.
  @Test func videoTooLargeForSentryCausesAWarning() throws {
    let spool = try TestSpool()
    let batch = try spool.scratch.directory("noise@1")
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "color=gray:s=1920x1920:r=1,noise=alls=100:allf=t", "-frames:v", "4",
        "-pix_fmt", "yuvj420p", "-q:v", "2", batch + "/%d.jpg",
      ])
    for (number, name) in try names(in: batch).enumerated() {
      try FileManager.default.moveItem(
        atPath: batch + "/" + name, toPath: batch + "/\(Self.start + Int64(number) * 1_000).jpg")
    }
    let output = spool.scratch.path("output")
    let said = try EncoderWorker.run("encode", batch, "-o", output, "-q", "sharp", "--sentry", "--json")
    let size = try event(Self.start, in: output + "/noise").data.payload.size
    #expect(said.status == 0)
    #expect(size > 10 << 20)
    let warning =
      "noise/segment-\(Self.start).mp4: \(size) bytes, and Sentry's backend drops videos of more than 10 MiB; "
      + "choose a lower --quality"
    #expect(said.errors == "\(batch): \(warning)\n")
    struct Receipt: Decodable { let warnings: [String] }
    #expect(try said.json(as: Receipt.self).warnings == [warning])
    // `encode` does not repeat the warning for a duplicate.
    #expect(try EncoderWorker.run("encode", batch, "-o", output, "-q", "sharp", "--sentry").errors == "")

    // A worker warns as well, also about a batch that was published without events.
    try FileManager.default.moveItem(atPath: batch, toPath: spool.path + "/incoming/noise@1")
    try FileManager.default.removeItem(atPath: output + "/noise/segment-\(Self.start).sentry.json")
    #expect(try spool.drain("--output", output, "--sentry").errors.contains(warning))
  }

  /// A worker died during a batch; its settings cut the segments at other times.
  @Test func rollBackOfASegmentRemovesItsEvent() throws {
    let spool = try TestSpool()
    try spool.add("gap")
    #expect(try spool.drain("--sentry", "--max-hold", "2000").status == 0)
    let session = spool.output + "/gap"
    let before = try PublishedSession(session).manifests
    // Without its last segment the batch is incomplete.
    let last = try #require(before.last)
    for suffix in ["mp4", "json"] {
      try FileManager.default.removeItem(atPath: session + "/segment-\(last.startMs).\(suffix)")
    }
    try spool.add("gap", as: "gap.again")
    #expect(try spool.drain("--max-hold", "86400000").status == 0)
    let after = try PublishedSession(session).manifests
    #expect(after.map(\.startMs) != before.map(\.startMs))
    #expect(try events(in: session) == after.map { "segment-\($0.startMs).sentry.json" })
    #expect(try EncoderWorker.run("verify", session).status == 0)
  }

  /// A batch that killed workers leaves no file, and the worker removes the session's directory.
  @Test func rollBackOfASessionRemovesAllItsFiles() throws {
    let spool = try TestSpool()
    try spool.add("gap")
    #expect(try spool.drain("--sentry").status == 0)
    let session = spool.output + "/gap"
    #expect(try events(in: session).count > 1)
    let last = try #require(try PublishedSession(session).manifests.last)
    try FileManager.default.removeItem(atPath: session + "/segment-\(last.startMs).json")
    let worker = try spool.start()
    try spool.waitUntil("the claim directory exists") { !(try spool.names("claimed").isEmpty) }
    worker.signal(SIGKILL)
    #expect(try worker.wait() == -SIGKILL)
    let dead = try #require(try spool.names("claimed").first)
    _ = try spool.scratch.directory("spool/claimed/\(dead)/1.3")
    try FileManager.default.copyItem(
      atPath: Fixture("gap").path, toPath: spool.path + "/claimed/\(dead)/1.3/gap")
    #expect(try spool.drain().status == 65)
    #expect(try spool.names("quarantine") == ["gap", "gap.reason.json"])
    #expect(!FileManager.default.fileExists(atPath: session))
  }
}
