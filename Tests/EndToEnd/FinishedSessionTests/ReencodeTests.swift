import Foundation
import JSON
import TestSupport
import Testing

/// `reencode` of finished sessions: other pixels at the same instants.
@Suite struct ReencodeTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func reencode(
    _ source: String, to output: String = "again", _ options: String..., verifying: Bool = true
  ) throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path, ["reencode", source, "--output", scratch.path(output), "--quality", "small"] + options,
      verifying: verifying)
  }

  private func stitch(_ session: PublishedSession, to name: String) throws -> String {
    let result = try EncoderWorker.run("stitch", session.path, "--to", scratch.path(name))
    try #require(result.status == 0, "\(result.errors)")
    return scratch.path(name)
  }

  @Test(arguments: Fixture.sample + Fixture.corpus)
  func reencodingChangesPixelsOnly(fixture: Fixture) throws {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let result = try reencode(session.path)
    try #require(result.status == 0, "\(result.errors)")
    let again = try PublishedSession(scratch.path("again/" + fixture.name))
    let verification = try EncoderWorker.run("verify", again.path)
    #expect(verification.status == 0, "\(verification.text)")
    let (one, two) = (try stitch(session, to: "one.mp4"), try stitch(again, to: "two.mp4"))
    let (before, after) = (try Probe(one), try Probe(two))
    for track in 0...1 {
      #expect(before.packets(of: track).map(\.pts) == after.packets(of: track).map(\.pts))
      #expect(before.packets(of: track).map(\.duration) == after.packets(of: track).map(\.duration))
      #expect(before.packets(of: track).map(\.isKey) == after.packets(of: track).map(\.isKey))
    }
    #expect(try Probe.timingTexts(one) == Probe.timingTexts(two))
    #expect(again.index.bytes < session.index.bytes)
    #expect(again.index.gaps == session.index.gaps && again.index.complete == session.index.complete)
    // A re-encoded manifest differs in the coded pictures only.
    let (originals, pictures) = (try session.pictures(), try again.pictures())
    for (index, (old, new)) in zip(session.manifests, again.manifests).enumerated() {
      var (left, right) = (try Self.members(session, old), try Self.members(again, new))
      let (source, digest) = (right.removeValue(forKey: "reencodedFrom"), left.removeValue(forKey: "manifestSha256"))
      #expect(source == digest)
      for key in ["bytes", "sha256", "manifestSha256", "encoder"] {
        left[key] = nil
        right[key] = nil
      }
      #expect(left == right)
      #expect(pictures[index].count == originals[index].count)
      guard Fixture.all.contains(where: { $0.path == fixture.path }) else { continue }
      #expect(zip(pictures[index], originals[index]).allSatisfy { $0.difference(to: $1) < 3 })
    }
  }

  private static func members(
    _ session: PublishedSession, _ manifest: PublishedSession.Manifest
  ) throws -> [String: JSONValue] {
    try SegmentManifestJSON(session.path + "/" + manifest.file.replacingOccurrences(of: ".mp4", with: ".json")).members
  }

  /// Without `--quality`, the session keeps its own, if it has one.
  @Test func qualityIsThatOfTheSession() throws {
    func qualities(_ source: String, to output: String, _ options: [String]) throws -> Set<String> {
      let result = try Tool.run(EncoderWorker.path, ["reencode", source, "--output", scratch.path(output)] + options)
      try #require(result.status == 0, "\(result.errors)")
      let again = try PublishedSession(scratch.path(output + "/single-frame"))
      return Set(
        try again.manifests.compactMap {
          try Self.members(again, $0)["encoder"]?.object?["quality"]?.string
        })
    }
    let encoded = try EncoderWorker.run(
      "encode", Fixture("single-frame").path, "--output", scratch.path("output"), "--quality", "sharp")
    try #require(encoded.status == 0, "\(encoded.errors)")
    let session = scratch.path("output/single-frame")
    #expect(try qualities(session, to: "overlay", ["--overlay", "name"]) == ["sharp"])
    #expect(try qualities(session, to: "small", ["--max-side", "100"]) == ["sharp"])
    #expect(try qualities(session, to: "other", ["--max-side", "100", "--quality", "small"]) == ["small"])
    // A second run makes nothing new.
    #expect(try qualities(session, to: "small", ["--max-side", "100"]) == ["sharp"])
    let refused = try EncoderWorker.run("reencode", session, "--output", scratch.path("none"))
    #expect(refused.status == 64 && refused.errors.contains("--overlay, --max-side"), "\(refused.errors)")
    #expect(!FileManager.default.fileExists(atPath: scratch.path("none")))
  }

  @Test func qualityOfSeveralIsBalanced() throws {
    let start: Int64 = 1_767_859_512_340
    for (number, quality) in ["sharp", "small"].enumerated() {
      let folder = try NumberedFolder("s@\(number)", in: scratch)
      try folder.add("\(start + 1_000 * Int64(number)).png", number)
      let result = try EncoderWorker.run(
        "encode", folder.path, "--output", scratch.path("output"), "--session", "s", "--quality", quality)
      try #require(result.status == 0, "\(result.errors)")
    }
    let result = try EncoderWorker.run(
      "reencode", scratch.path("output/s"), "--output", scratch.path("again"), "--overlay", "name")
    try #require(result.status == 0, "\(result.errors)")
    let again = try PublishedSession(scratch.path("again/s"))
    #expect(again.manifests.count == 2)
    for manifest in again.manifests {
      #expect(try Self.members(again, manifest)["encoder"]?.object?["quality"]?.string == "balanced")
    }
  }

  /// A session whose quality is not one any more has another default: the message names the one that was used.
  @Test func qualityThatWasUsedIsNamed() throws {
    let start: Int64 = 1_767_859_512_340
    let words = ["reencode", scratch.path("output/s"), "--output", scratch.path("again"), "--overlay", "name"]
    for (number, quality) in ["sharp", "small"].enumerated() {
      let folder = try NumberedFolder("s@\(number)", in: scratch)
      try folder.add("\(start + 1_000 * Int64(number)).png", number)
      let encoded = try EncoderWorker.run(
        "encode", folder.path, "--output", scratch.path("output"), "--session", "s", "--quality", quality)
      try #require(encoded.status == 0, "\(encoded.errors)")
      let result = try Tool.run(EncoderWorker.path, words)
      #expect(result.status == (number == 0 ? 0 : 65), "\(result.errors)")
      #expect(result.errors.contains("give --quality sharp") == (number == 1), "\(result.errors)")
    }
    #expect(try Tool.run(EncoderWorker.path, words + ["--quality", "sharp"]).status == 0)
  }

  @Test(arguments: [("rotation", 100), ("odd-size", 64), ("exact-1fps", 5_000)])
  func maxSideLimitsBothSides(fixture: String, side: Int) throws {
    let session = try EncoderWorker.encode(Fixture(fixture), into: scratch)
    try #require(try reencode(session.path, to: "again", "--max-side", "\(side)").status == 0)
    let again = try PublishedSession(scratch.path("again/" + fixture))
    #expect(try EncoderWorker.run("verify", again.path).status == 0)
    for (old, new) in zip(session.manifests, again.manifests) {
      let longest = max(old.width, old.height)
      #expect(max(new.width, new.height) == min(side, longest))
      let scale = Double(min(side, longest)) / Double(longest)
      #expect(abs(Double(new.width) - Double(old.width) * scale) <= 0.5)
      #expect(abs(Double(new.height) - Double(old.height) * scale) <= 0.5)
      #expect(new.codedWidth == new.width + new.width % 2 && new.codedHeight == new.height + new.height % 2)
    }
    let (originals, pictures) = (try session.pictures(), try again.pictures())
    #expect(pictures.map { $0.map(\.number) } == originals.map { $0.map(\.number) })
  }

  /// A run that is stopped at any moment and restarted produces the same bytes as an uninterrupted run.
  @Test(arguments: [SIGTERM, SIGKILL])
  func stoppedRunIsContinued(signal: Int32) throws {
    let spool = try TestSpool()
    for number in 0..<40 { try spool.addSmall("walk@\(number)", startMs: 1_767_859_512_340 + Int64(number) * 2_000) }
    try #require(try spool.drain().status == 0)
    let session = spool.output + "/walk"
    try #require(try reencode(session, to: "undisturbed").status == 0)
    let arguments = ["reencode", session, "--output", scratch.path("again"), "--quality", "small", "--jobs", "1"]
    var stops = 0
    // Each run continues from the last one, until one finishes.
    for milliseconds in stride(from: 30, through: 6_000, by: Extent.of(60, full: 15)) {
      let worker = try RunningWorker(arguments)
      usleep(UInt32(milliseconds) * 1_000)
      // The process handles signals before it makes its staging directory.
      let staging = scratch.path("again/.staging")
      let there = FileManager.default.fileExists(atPath: staging) ? try names(in: staging) : []
      let isReady = there.contains { $0.contains("~\(worker.processIdentifier)~") }
      worker.signal(signal)
      let status = try worker.wait()
      if status == 0 { break }
      stops += 1
      // A SIGTERM before the handler is installed ends the process.
      #expect(status == (signal == SIGTERM ? 75 : -SIGKILL) || (status == -SIGTERM && !isReady))
    }
    #expect(stops > 0)
    try #require(try reencode(session).status == 0)
    let difference = try Tool.run(
      "diff", ["-r", "--exclude=.staging", scratch.path("undisturbed"), scratch.path("again")])
    #expect(difference.text == "")
    let before = try snapshot(of: scratch.path("again/walk"))
    let result = try reencode(session, to: "again", "--json")
    #expect(result.text.contains("\"encoded\":0,"))
    #expect(try snapshot(of: scratch.path("again/walk")) == before)
    #expect(try names(in: scratch.path("again/.staging")).isEmpty)
  }

  @Test func existingSessionIsNotMixedWithAnother() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let before = try snapshot(of: session.path)
    let own = try reencode(session.path, to: "output")
    #expect(own.status == 65)
    #expect(own.errors.contains("published there already, with other settings or from another source"))
    #expect(try snapshot(of: session.path) == before)
    #expect(try reencode(session.path).status == 0)
    #expect(try reencode(session.path, to: "again", "--max-side", "100").status == 65)
    #expect(try reencode(session.path, to: "again", "--session", "other").status == 0)
    #expect(try Tool.run(EncoderWorker.path, ["verify", scratch.path("again/other")]).status == 0)
    #expect(try reencode(session.path, to: "again", "--start", "0").status == 64)
    // `reencode` checks the existing session before it reports it as done.
    let again = try PublishedSession(scratch.path("again/exact-1fps"))
    try Data().write(to: URL(fileURLWithPath: again.video(again.manifests[0])))
    let damaged = try reencode(session.path)
    #expect(damaged.status == 65)
    #expect(damaged.errors.contains("segment-1767859512340.mp4: not the file its manifest describes"))
  }

  /// Two runs with different settings at once: each segment comes from one of them, and no file is damaged.
  @Test func concurrentRunsWithDifferentSettingsDamageNoFile() throws {
    let spool = try TestSpool()
    for number in 0..<12 { try spool.addSmall("walk@\(number)", startMs: 1_767_859_512_340 + Int64(number) * 2_000) }
    try #require(try spool.drain().status == 0)
    for round in 0..<4 {
      let output = scratch.path("round\(round)")
      let workers = try ["small", "sharp", "small"].map {
        try RunningWorker(["reencode", spool.output + "/walk", "--output", output, "--quality", $0, "--jobs", "1"])
      }
      let ends = try workers.map { try $0.wait() }
      #expect(ends.allSatisfy { $0 == 0 || $0 == 65 }, "\(ends)")
      let verification = try EncoderWorker.run("verify", output + "/walk")
      #expect(!verification.text.contains("not the file its manifest describes"), "\(verification.text)")
    }
  }

  @Test func damageIsReported() throws {
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let file = session.video(session.manifests[1])
    try Data("no video".utf8).write(to: URL(fileURLWithPath: file))
    let result = try reencode(session.path, verifying: false)
    #expect(result.status == 65)
    #expect(result.errors.contains("\(session.manifests[1].file): not the file its manifest describes"))
    // The other segments exist.
    #expect(try PublishedSession(scratch.path("again/exact-1fps")).manifests.count == 2)
    let text = try reencode(Fixture("exact-1fps").path + "/batch.json", to: "nothing")
    #expect(text.status == 65)
    #expect(text.errors.contains("name a directory OUTPUT/SESSION, or an MP4"))
    #expect(try reencode(scratch.path("nothing.mp4"), to: "nothing").status == 65)
  }
}
