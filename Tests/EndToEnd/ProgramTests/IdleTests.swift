import Foundation
import TestSupport
import Testing

/// The worker neither decodes nor encodes an unchanged frame.
@Suite struct IdleTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private static let startMs = 1_767_859_512_340

  /// Makes batches of five seconds, with one of these images a second.
  private func batches(_ images: [[String]]) throws -> [String] {
    try images.enumerated().map { number, images in
      let path = try scratch.directory("in/\(number)")
      for (second, image) in images.enumerated() {
        try scratch.file(
          "in/\(number)/\(Self.startMs + 5_000 * number + 1_000 * second).jpg", try Fixture("jittered").bytes(image))
      }
      return path
    }
  }

  private var images: [String] { get throws { try names(in: Fixture("jittered").path).filter { $0.hasSuffix("jpg") } } }

  /// Encodes the batches. Returns the number of processes that the worker forked.
  private func forks(_ batches: [String], into output: String) throws -> Int {
    let log = scratch.path("log")
    let result = try Tool.run(
      "strace",
      [
        "-f", "-E", "ASAN_OPTIONS=detect_leaks=0", "-o", log, "-e", "trace=clone,clone3,fork,vfork", EncoderWorker.path,
        "encode", "--session", "s",
        "--jobs",
        "1", "--sandbox", "require", "--output", scratch.path(output),
      ] + batches)
    #expect(result.status == 0, "\(result.errors)")
    return try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
      .count { $0.contains("SIGCHLD") && !$0.contains("CLONE_VM") && !$0.contains("--- ") && !$0.contains("resumed") }
  }

  /// Expects each batch to give the same video alone as in `all`.
  private func expectEachAsIfAlone(_ batches: [String]) throws {
    for (number, batch) in batches.enumerated() {
      let own = scratch.path("own-\(number)")
      #expect(try EncoderWorker.run("encode", batch, "--session", "s", "--output", own).status == 0)
      let file = "s/segment-\(Self.startMs + 5_000 * number).mp4"
      #expect(FileManager.default.contentsEqual(atPath: own + "/" + file, andPath: scratch.path("all/" + file)))
    }
  }

  @Test func unchangedScreenIsDecodedOnce() throws {
    let image = try images[0]
    let batches = try batches(Array(repeating: Array(repeating: image, count: 5), count: 4))
    let once = try forks([batches[0]], into: "once")
    #expect(once > 0)
    #expect(try forks(batches, into: "all") == once)
    try expectEachAsIfAlone(batches)
  }

  @Test func rememberedKeyFrameIsShownWhenAnotherFrameFollows() throws {
    let images = try images
    let still = Array(repeating: images[0], count: 5)
    let batches = try batches([
      still, [images[0], images[0], images[1], images[0], images[0]], [images[1]] + still[1...],
    ])
    #expect(
      try EncoderWorker.run(
        "encode", batches[0], batches[1], batches[2], "--session", "s", "--jobs", "1", "--output", scratch.path("all")
      )
      .status == 0)
    try expectEachAsIfAlone(batches)
  }

  /// A session never shows the output of another session's decoder.
  @Test func decoderOutputIsNotSharedBetweenSessions() throws {
    let still = Array(repeating: try images[0], count: 5)
    let batches = try batches([still, still])
    for number in 0..<2 {
      try scratch.file("in/\(number)/batch.json", Array("{\"version\":1,\"session\":\"s\(number)\"}".utf8))
    }
    let once = try forks([batches[0]], into: "once")
    #expect(try forks(batches, into: "all") == once + 1)
  }

  /// Files with different bytes and the same pixels count as repeats.
  @Test func filesOfTheSamePixelsAreRepeats() throws {
    let batch = try batches([Array(repeating: try images[0], count: 5)])[0]
    let own = scratch.path("own")
    #expect(try EncoderWorker.run("encode", batch, "--session", "s", "--output", own).status == 0)
    let before = try Probe(own + "/s/segment-\(Self.startMs).mp4").packets(of: 0).map(\.size)
    for second in [1, 2, 4] {
      let file = "in/0/\(Self.startMs + 1_000 * second).jpg"
      let image = try Data(contentsOf: URL(fileURLWithPath: scratch.path(file)))
      // The test inserts a comment after the start of the image.
      try scratch.file(file, Array(image.prefix(2)) + [0xFF, 0xFE, 0, 4, 1, 2] + Array(image.dropFirst(2)))
    }
    let other = scratch.path("other")
    #expect(try EncoderWorker.run("encode", batch, "--session", "s", "--output", other).status == 0)
    #expect(try Probe(other + "/s/segment-\(Self.startMs).mp4").packets(of: 0).map(\.size) == before)
    #expect(before.dropFirst().allSatisfy { (Int($0) ?? .max) < 64 })
  }

  /// The same pixels with other masks are another picture.
  @Test func unchangedPixelsWithOtherMasksAreEncodedAgain() throws {
    let image = try images[0]
    let batches = try batches([Array(repeating: image, count: 5), Array(repeating: image, count: 5)])
    let frames = (0..<5).map {
      "{\"file\":\"\(Self.startMs + 5_000 + 1_000 * $0).jpg\",\"timeMs\":\(Self.startMs + 5_000 + 1_000 * $0),"
        + "\"masks\":[{\"x\":0,\"y\":0,\"width\":1000,\"height\":1000}]}"
    }
    try scratch.file(
      "in/1/batch.json", Array("{\"version\":1,\"session\":\"s\",\"frames\":[\(frames.joined(separator: ","))]}".utf8))
    let result = try EncoderWorker.run(
      "encode", batches[0], batches[1], "--session", "s", "--jobs", "1", "--output", scratch.path("out"))
    #expect(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("out/s"))
    try #require(session.manifests.count == 2)
    let size = (session.manifests[0].width, session.manifests[0].height)
    let shown = try session.manifests.map {
      try Pixels.decode(session.video($0), width: size.0, height: size.1)[0]
    }
    #expect(shown[0].difference(to: shown[1]) > 5)
  }
}
