import Foundation
import TestSupport
import Testing

private let isRecognitionInstalled = (try? Tool.run("tesseract", ["--version"]).status == 0) ?? false

/// The clock of `reencode --overlay`, read by a text recognition that knows nothing of the font.
@Suite(.enabled(if: isRecognitionInstalled, "there is no tesseract: scripts/setup test"))
struct OverlayRecognitionTests {
  private static let startMs: Int64 = 1_767_859_512_340
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A session of pictures of 375 pixels in width, one a second.
  private func session(frames: Int) throws -> PublishedSession {
    _ = try scratch.directory("walk")
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=375x667:r=1", "-frames:v", "\(frames)", "-start_number", "0",
        scratch.path("walk/%d.png"),
      ])
    let list = (0..<frames).map { #"{"file":"\#($0).png","timeMs":\#(Self.startMs + 1_000 * Int64($0))}"# }
    try scratch.file(
      "walk/batch.json", Array(#"{"version":1,"session":"walk","frames":[\#(list.joined(separator: ","))]}"#.utf8))
    return try EncoderWorker.encode(Fixture(file: scratch.path("walk")), into: scratch)
  }

  /// Recognises the text of a picture's clock: dark on white, three times as large.
  private func recognised(in picture: Pixels, of manifest: PublishedSession.Manifest) throws -> String {
    // The layout as docs/output.md describes it, without the code that draws it: a letter is 5 columns, a space 1.
    let scale = max(1, (12 * manifest.width + 2_624) / 2_625)
    let height = (11 * scale + 1) / 2 * 2
    let top = (manifest.height - 2 * scale) / 2 * 2 - height
    let width = 6 * scale * 21 + 2 * scale
    let image = "P6\n\(picture.width) \(picture.height)\n255\n"
    try scratch.file("picture.ppm", Array(image.utf8) + picture.bytes)
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-y", "-i", scratch.path("picture.ppm"), "-vf",
        "crop=\(width):\(height):\(2 * scale):\(top),format=gray,negate,scale=iw*3:ih*3:flags=bicubic,"
          + "pad=iw+80:ih+80:40:40:white", scratch.path("clock.png"),
      ])
    let text = try Tool.output(
      "tesseract",
      [
        scratch.path("clock.png"), "-", "--psm", "7", "-c", "tessedit_char_whitelist=0123456789-: Z",
      ])
    return String(decoding: text, as: UTF8.self)
  }

  @Test func everyTenthPictureIsReadAsItsSecond() throws {
    let source = try session(frames: 44)
    let result = try Tool.run(
      EncoderWorker.path,
      ["reencode", source.path, "--output", scratch.path("again"), "--quality", "small", "--overlay", "clock"])
    try #require(result.status == 0, "\(result.errors)")
    let again = try PublishedSession(scratch.path("again/walk"))
    var read = 0
    var number = 0
    for (manifest, pictures) in zip(again.manifests, try again.pictures()) {
      try #require(manifest.frames.count == pictures.count)
      for (frame, picture) in zip(manifest.frames, pictures) {
        defer { number += 1 }
        guard number % 10 == 0 else { continue }
        let time = Date(timeIntervalSince1970: Double(frame.timeMs / 1_000))
        let second = ISO8601DateFormatter().string(from: time).replacing("T", with: " ").dropLast()
        // The letter of the zone is not a part of the second.
        #expect(try recognised(in: picture, of: manifest).hasPrefix(second), "picture \(number)")
        read += 1
      }
    }
    #expect(read == 5)
  }
}
