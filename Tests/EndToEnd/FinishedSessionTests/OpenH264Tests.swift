import Foundation
import TestSupport
import Testing

/// OpenH264 decodes films to the same samples as stock ffmpeg: pictures of the encoder, repeats, and key frames of clips. It is
/// stricter: it ends at the first error of a stream.
@Suite struct OpenH264Tests {
  private let scratch: ScratchDirectory

  /// The directory of the decoder, which is built once.
  private static let decoder = Result {
    let directory = try ScratchDirectory()
    let source = Fixture.root.appendingPathComponent("Tests/reference/openh264.c").path
    try Tool.output(
      "clang", ["-O1", "-Wall", "-Wextra", "-Werror", source, "-lopenh264", "-o", directory.path("openh264")])
    return directory
  }

  init() throws { scratch = try ScratchDirectory() }

  private func expectSameSamples(in film: String) throws {
    // With the pictures that an edit list hides.
    let input = ["-v", "error", "-ignore_editlist", "1", "-i", film, "-map", "0:v:0"]
    let pictures = try Tool.output(
      "ffmpeg",
      input + ["-autoscale", "0", "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-"])
    let stream = try Tool.output("ffmpeg", input + ["-c", "copy", "-bsf:v", "h264_mp4toannexb", "-f", "h264", "-"])
    let decoded = try Tool.run(Self.decoder.get().path("openh264"), [], input: stream)
    #expect(decoded.status == 0, "\(film): \(decoded.errors)")
    #expect(!pictures.isEmpty)
    #expect(decoded.output == pictures, "\(film): \(decoded.output.count) and \(pictures.count) bytes")
  }

  private func expectSameSamples(of session: PublishedSession) throws {
    let start = session.index.startMs
    for (name, options) in [
      ("film", []), ("cut", ["--idle", "cut"]), ("clip", ["--from", "\(start + 1_111)"]),
    ] {
      let film = scratch.path("\(session.index.session)-\(name).mp4")
      let result = try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", film] + options)
      try #require(result.status == 0, "\(result.errors)")
      try expectSameSamples(in: film)
    }
  }

  /// Sizes that change, odd sizes, gaps and repeats.
  @Test(arguments: ["exact-1fps", "gap", "irregular-3fps", "jittered", "odd-size", "on-change", "rotation"])
  func filmsOfFixturesAreTheSame(fixture: String) throws {
    try expectSameSamples(of: EncoderWorker.encode(Fixture(fixture), into: scratch))
  }

  /// More pictures follow a key frame than their numbers count, and coded ones are among them.
  @Test func filmOfAnIdleScreenIsTheSame() throws {
    let folder = try NumberedFolder("idle", in: scratch)
    for (index, number) in ([1, 1, 1, 2] + Array(repeating: 3, count: 30) + [4]).enumerated() {
      try folder.add("\(NumberedFolder.startMs + 1_000 * Int64(index)).png", number)
    }
    let result = try EncoderWorker.run("encode", folder.path, "--output", scratch.path("out"), "--session", "idle")
    try #require(result.status == 0, "\(result.errors)")
    try expectSameSamples(of: PublishedSession(scratch.path("out/idle")))
  }

  @Test(arguments: ["small", "sharp", "archive"])
  func filmsOfEachQualityAreTheSame(quality: String) throws {
    let session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    let result = try Tool.run(
      EncoderWorker.path, ["reencode", session.path, "--output", scratch.path("again"), "--quality", quality])
    try #require(result.status == 0, "\(result.errors)")
    try expectSameSamples(of: PublishedSession(scratch.path("again/\(session.index.session)")))
  }
}
