import Foundation
import TestSupport
import Testing

/// `film` makes one MP4 of pictures, and nothing else.
@Suite struct FilmCommandTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func film(_ words: String..., to file: String = "film.mp4") throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path, ["film"] + words + ["--to", scratch.path(file)], in: scratch.url,
      environment: ["TMPDIR": scratch.path("tmp")])
  }

  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: scratch.path(name))) }

  /// Copies the pictures of a fixture under other names.
  private func pictures(_ names: [String], in folder: String) throws {
    _ = try scratch.directory(folder)
    for (number, name) in names.enumerated() {
      try scratch.file("\(folder)/\(name)", Fixture("exact-1fps").bytes(String(format: "%04d.jpg", number)))
    }
  }

  @Test(arguments: ["jittered", "gap", "on-change", "masks"]) func filmIsThatOfEncodeAndStitch(fixture: String) throws {
    _ = try scratch.directory("tmp")
    let result = try film(Fixture(fixture).path)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text.contains(scratch.path("film.mp4")) && result.text.contains(" ms, "), "\(result.text)")
    let encoded = try Tool.run(EncoderWorker.path, ["encode", Fixture(fixture).path, "-o", scratch.path("out")])
    let session = try #require(try names(in: scratch.path("out")).first { !$0.hasPrefix(".") })
    let stitched = try Tool.run(
      EncoderWorker.path, ["stitch", scratch.path("out/" + session), "--to", scratch.path("stitched.mp4")])
    #expect(encoded.status == 0 && stitched.status == 0, "\(stitched.errors)")
    #expect(try bytes("film.mp4") == bytes("stitched.mp4"))
    #expect(try Set(names(in: scratch.path)) == ["film.mp4", "out", "stitched.mp4", "tmp"])
    #expect(try names(in: scratch.path("tmp")) == [])
  }

  @Test func numberedPicturesNeedOnlyARate() throws {
    _ = try scratch.directory("tmp")
    try pictures((1...6).map { String(format: "frame_%04d.jpg", $0) }, in: "frames")
    let result = try film("frames", "--fps", "2")
    #expect(result.status == 0 && result.text.contains(" 3000 ms"), "\(result.text)\(result.errors)")
    let fast = try film("frames", "--fps", "2", "--speed", "3")
    #expect(fast.status == 0 && fast.text.contains(" 1000 ms"), "\(fast.text)\(fast.errors)")
    let part = try film("frames", "--fps", "2", "--from", "+1s", "--to-time", "+2s")
    #expect(part.status == 0 && part.text.contains(" 1000 ms"), "\(part.text)\(part.errors)")
  }

  @Test func severalInputsAreOneFilm() throws {
    _ = try scratch.directory("tmp")
    try pictures(["1767859512000.jpg", "1767859513000.jpg"], in: "one")
    try pictures(["1767859514000.jpg", "1767859515000.jpg"], in: "two")
    let result = try film("two", "one")
    #expect(result.status == 0 && result.text.contains(" 4000 ms"), "\(result.text)\(result.errors)")
    try pictures(["1767859513500.jpg", "1767859515500.jpg"], in: "three")
    let overlapping = try film("two", "one", "three", to: "other.mp4")
    #expect(overlapping.status == 65 && overlapping.errors.contains("overlaps"), "\(overlapping.errors)")
    #expect(try !names(in: scratch.path).contains("other.mp4"))
  }

  @Test func inputThatCannotBeUsedMakesNoFilm() throws {
    _ = try scratch.directory("tmp")
    _ = try scratch.directory("data/2026-01-08")
    for name in ["1767859512340_m1.jpg", "1767859513340_m2.jpg"] {
      try scratch.file("data/2026-01-08/" + name, Fixture("exact-1fps").bytes("0000.jpg"))
    }
    let screens = try film("data")
    #expect(screens.status == 65 && screens.errors.contains("it has 2 sessions: film.m1, film.m2"), "\(screens.errors)")
    let missing = try film("nowhere")
    #expect(missing.status == 65 && missing.errors.contains("nowhere"), "\(missing.errors)")
    #expect(try film("data", to: "film.gif").status == 64)
    #expect(try !names(in: scratch.path).contains("film.mp4"))
  }

  /// The segments and the film have no name before the film is whole.
  @Test func killedCommandLeavesNothing() throws {
    _ = try scratch.directory("tmp")
    let target = try scratch.directory("films")
    var random = Random(seed: 46)
    for _ in 0..<(Extent.isFull ? 200 : 12) {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: EncoderWorker.path)
      process.arguments = ["film", Fixture("jittered").path, "--to", target + "/film.mp4"]
      process.environment = ["TMPDIR": scratch.path("tmp"), "PATH": "/usr/bin:/bin"]
      process.standardOutput = FileHandle.nullDevice
      process.standardError = FileHandle.nullDevice
      try process.run()
      usleep(UInt32.random(in: 1_000...400_000, using: &random))
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
      // It may have been done before.
      #expect(try Set(names(in: target)).isSubset(of: ["film.mp4"]) && names(in: scratch.path("tmp")) == [])
    }
  }
}
