import Foundation
import TestSupport
import Testing

/// The programs in `examples/embedding`, which use only the library's public API.
@Suite struct EmbeddingExampleTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func run(_ example: String, _ words: String...) throws -> Tool.Result { try run(example, words) }

  private func run(_ example: String, _ words: [String]) throws -> Tool.Result {
    let program = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent().appendingPathComponent(example)
    let result = try Tool.run(program.path, words)
    // The library and FFmpeg write nothing to standard error.
    #expect(result.errors.isEmpty, "\(example)")
    return result
  }

  /// Code with an encoder compiles where a reader puts it: at the top level of `main.swift`, whose variables are globals. No program has
  /// it there, and `finish` consumes the encoder.
  @Test func codeWithAnEncoderCompilesInMain() throws {
    let root = Fixture.root
    let catalog = root.appendingPathComponent("Sources/SegmentEncoder/Documentation.docc")
    let pages =
      try [root.appendingPathComponent("README.md")]
      + [catalog, root.appendingPathComponent("docs")].flatMap { folder in
        try names(in: folder.path).filter { $0.hasSuffix(".md") }.map(folder.appendingPathComponent)
      }
    let blocks = try pages.flatMap { page in
      try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```swift\n").dropFirst()
        .map { $0.components(separatedBy: "```")[0] }.filter { $0.contains("FrameEncoder(") }
    }
    #expect(blocks.count >= 2)
    let before = """
      import Foundation
      import SegmentEncoder
      let words = CommandLine.arguments
      guard let session = SessionID("lobby") else { exit(1) }
      let startMs: Int64 = 0

      """
    let build = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent().path
    let sources = root.appendingPathComponent("Sources").path
    let maps =
      try names(in: sources).map { sources + "/" + $0 + "/module.modulemap" }
      .filter { FileManager.default.fileExists(atPath: $0) } + [build + "/CPixels.build/module.modulemap"]
    for block in Set(blocks) {
      let main = try scratch.file("main.swift", Array((before + block).utf8))
      // Only the intermediate language has the check.
      let compiled = try Tool.compile(
        ["-swift-version", "6", "-emit-sil", "-o", "/dev/null", "-I", build + "/Modules", main]
          + maps.flatMap { ["-Xcc", "-fmodule-map-file=" + $0] })
      #expect(compiled.status == 0, "\(block): \(compiled.errors)")
    }
  }

  /// Code in the articles compiles, because it is that of an example or of a test.
  @Test func codeOfTheArticlesIsThatOfTheExamples() throws {
    let root = Fixture.root
    func text(_ file: String) throws -> String {
      try String(contentsOf: root.appendingPathComponent(file), encoding: .utf8)
    }
    func unindented(_ text: some StringProtocol) -> String {
      text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "\n") + "\n"
    }
    let examples = try #require(FileManager.default.enumerator(atPath: root.appendingPathComponent("examples").path))
    let sources = try examples.compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") && !$0.contains(".build") }
      .map { try unindented(text("examples/" + $0)) }
    let known = try sources + [unindented(text("Tests/SegmentEncoderTests/EmbeddingTests.swift"))]
    let catalog = "Sources/SegmentEncoder/Documentation.docc"
    let articles = try names(in: root.appendingPathComponent(catalog).path).filter { $0.hasSuffix(".md") }
    #expect(articles.count > 5)
    for article in articles {
      let blocks = try text(catalog + "/" + article).components(separatedBy: "```swift\n").dropFirst()
      for block in blocks.map({ unindented($0.components(separatedBy: "```")[0]) }) {
        #expect(known.contains { $0.contains(block) }, "\(article): no example has this code: \(block)")
      }
    }
    // Each step of the tutorial is a part of the program.
    let program = try text("examples/embedding/FirstSegment/main.swift").split(separator: "\n")
    for step in 1...4 {
      var rest = program[...]
      for line in try text("examples/tutorial/first-segment-\(step).swift").split(separator: "\n") {
        rest = rest.drop { $0 != line }.dropFirst()
        #expect(rest.startIndex < program.endIndex || line == program.last, "first-segment-\(step).swift: \(line)")
      }
    }
  }

  @Test func batchIsEncodedAndItsSessionShown() throws {
    let output = scratch.path("output")
    let encoded = try run("EncodeFrames", Fixture("jittered").path, "lobby", output)
    #expect(encoded.status == 0 && encoded.text == "11 frames in 3 segments of session lobby, below \(output)\n")
    #expect(try EncoderWorker.run("verify", output + "/lobby").status == 0)
    let shown = try run("ShowSessions", output, "lobby", scratch.path("shown"))
    #expect(shown.status == 0 && shown.text.hasPrefix("lobby: 11 frames\n"))
    // The session goes on: ffprobe would wait for more segments, and the last one is held back.
    let ended = try String(contentsOfFile: scratch.path("shown/session.m3u8"), encoding: .utf8) + "#EXT-X-ENDLIST\n"
    try ended.write(toFile: scratch.path("shown/ended.m3u8"), atomically: true, encoding: .utf8)
    let probe = try Tool.output(
      "ffprobe",
      [
        "-v", "error", "-allowed_extensions", "ALL", "-count_packets", "-select_streams", "v", "-show_entries",
        "stream=nb_read_packets", "-of", "csv=p=0", scratch.path("shown/ended.m3u8"),
      ])
    #expect((Int(String(decoding: probe, as: UTF8.self).prefix { $0.isNumber }) ?? 0) >= 10)
    #expect(try Data(contentsOf: URL(fileURLWithPath: scratch.path("shown/first.jpg"))).starts(with: [0xFF, 0xD8]))
    let session = try PublishedSession(output + "/lobby")
    let frame = try #require(session.captured.last { $0.timeMs <= session.index.startMs + 1_500 })
    #expect(shown.text.contains("captured at \(frame.timeMs), on screen until "))
    #expect(try ImageProbe(scratch.path("shown/frame.jpg")).pixels().number == 1)
    #expect(try run("ShowSessions", output, "nobody", scratch.path("none")).status == 1)
  }

  @Test func customStoreHasTheFilesOfAnOutputDirectory() throws {
    let target = scratch.path("target")
    for _ in 0..<2 {
      #expect(try run("OwnStore", Fixture("jittered").path, "lobby", target).status == 0)
    }
    #expect(try run("EncodeFrames", Fixture("jittered").path, "lobby", scratch.path("output")).status == 0)
    let files = try names(in: scratch.path("output/lobby")).filter { $0.hasPrefix("segment-") }
    #expect(try names(in: target) == files.map { "lobby." + $0 }.sorted())
    for file in files {
      #expect(
        try Fixture(file: target + "/lobby." + file).bytes()
          == Fixture(file: scratch.path("output/lobby/" + file)).bytes())
    }
  }

  @Test func picturesInMemoryBecomeTheSegmentsOfEncode() throws {
    let fixture = Fixture("jittered").path
    let pictures = try names(in: fixture).filter { $0.hasSuffix(".jpg") }.map { fixture + "/" + $0 }
    let target = try scratch.directory("target")
    let program = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent().appendingPathComponent(
      "FramesFromMemory")
    // It needs neither a directory for files of its own, nor one that it can write to.
    let result = try Tool.run(
      "sh", ["-c", "cd /proc && unset TMPDIR HOME && exec \"$0\" \"$@\"", program.path, "lobby", target] + pictures)
    #expect(result.status == 0 && result.errors.isEmpty)
    #expect(result.text.split(separator: "\n").count == 3)
    #expect(try run("EncodeFrames", fixture, "lobby", scratch.path("output")).status == 0)
    let files = try names(in: scratch.path("output/lobby")).filter { $0.hasPrefix("segment-") }
    #expect(try names(in: target) == files)
    for file in files where file.hasSuffix(".mp4") {
      #expect(
        try Fixture(file: target + "/" + file).bytes() == Fixture(file: scratch.path("output/lobby/" + file)).bytes())
    }
  }

  @Test func firstSegmentShowsEachPictureForASecond() throws {
    let pictures = (0..<3).map { Fixture("exact-1fps").path + "/000\($0).jpg" }
    let video = scratch.path("first.mp4")
    let result = try run("FirstSegment", [video] + pictures)
    #expect(result.status == 0 && result.text.hasPrefix("3 pictures, 3000 ms, "))
    let packets = try Probe(video).packets(of: 0)
    #expect(packets.count == 3 && packets.allSatisfy { $0.duration == 90_000 })
    #expect(try run("FirstSegment", video).status == 64)
    let bad = try run("FirstSegment", video, try scratch.file("0.jpg", Array("no picture".utf8)))
    #expect(bad.status == 1 && bad.text.hasPrefix("not encoded: 1767859512340: "))
  }

  @Test func livePlaylistGrowsAndItsStreamIsExact() throws {
    let pictures = try names(in: Fixture("jittered").path).map { Fixture("jittered").path + "/" + $0 }
    let target = scratch.path("target")
    let result = try run("LiveHLS", ["lobby", scratch.path("output"), target] + pictures)
    #expect(result.status == 0)
    let playlists = result.text.components(separatedBy: "\n\n").filter { !$0.isEmpty }.map { $0 + "\n" }
    // The first segment is listed with the second one.
    #expect(playlists.count == 2)
    // Lines that a player has read never change, and it reads on until the last playlist.
    for (one, next) in zip(playlists, playlists.dropFirst()) { #expect(next.hasPrefix(one)) }
    #expect(playlists.map { $0.hasSuffix("#EXT-X-ENDLIST\n") } == [false, true])
    #expect(playlists.allSatisfy { $0.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n") && $0.contains("#EXT-X-MAP:URI=") })
    let probe = try Tool.output(
      "ffprobe",
      [
        "-v", "error", "-allowed_extensions", "ALL", "-count_packets", "-select_streams", "v", "-show_entries",
        "format=duration:stream=nb_read_packets", "-of", "default=nokey=1:noprint_wrappers=1", target + "/session.m3u8",
      ])
    // From the first capture to one second after the last. A segment may begin with the picture of the one before.
    let lines = String(decoding: probe, as: UTF8.self).split(separator: "\n")
    #expect(lines.last == "11.014000" && (Int(lines.first ?? "") ?? 0) >= 11)
    let encoded = try run("EncodeFrames", Fixture("jittered").path, "lobby", scratch.path("encoded"))
    #expect(encoded.status == 0)
    for file in try names(in: scratch.path("encoded/lobby")) where file.hasSuffix(".mp4") {
      #expect(
        try Fixture(file: scratch.path("output/lobby/" + file)).bytes()
          == Fixture(file: scratch.path("encoded/lobby/" + file)).bytes())
    }
  }

  @Test func embeddedWorkerEncodesBatchesAndLeavesTheSpoolOnStop() throws {
    let spool = try TestSpool()
    let program = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent().appendingPathComponent(
      "RunWorker")
    try spool.add("exact-1fps")
    try spool.add("corrupt-frames")
    try spool.add(file: "broken.tar", Array("no archive".utf8))
    // The server exits at the end of standard input. The script closes it when one session and one reason exist.
    let server = """
      (for i in $(seq 1200); do
        [ -e "$1/output/exact-1fps/session.json" ] && [ -e "$1/quarantine/broken.tar.reason.json" ] &&
          [ -z "$(ls "$1/incoming")" ] && break
        sleep 0.05
      done; echo state) | "$0" "$1"
      """
    let result = try Tool.run("sh", ["-c", server, program.path, spool.path])
    #expect(result.status == 0 && result.errors.isEmpty)
    let lines = result.text.split(separator: "\n")
    #expect(lines.contains { $0.contains("state: ready") })
    #expect(lines.contains { $0.contains("warning") && $0.contains("quarantined") && $0.contains("broken.tar") })
    #expect(lines.contains { $0.contains("published") && $0.contains("exact-1fps") })
    #expect(lines.last?.hasSuffix("stopped") == true)
    #expect(try spool.isAtRest)
    #expect(try EncoderWorker.run("verify", spool.output + "/exact-1fps").status == 0)
  }

  @Test(arguments: ["EncodeFrames", "OwnStore"])
  func brokenPicturesAndBatchesLeaveStandardErrorEmpty(example: String) throws {
    let broken = try run(example, Fixture("corrupt-frames").path, "broken", scratch.path("output"))
    #expect(broken.status == 0)
    let bad = try scratch.file("upload", Array("no batch".utf8))
    let refused = try run(example, bad, "broken", scratch.path("output"))
    #expect(refused.status == 1 && refused.text.hasPrefix("not published: "))
  }
}
