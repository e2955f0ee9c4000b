import Foundation
import TestSupport
import Testing

/// A screen recorder that stops after some minutes leaves several MP4s of one recording.
@Suite struct RecordingPartsTests {
  private static let startMs: Int64 = 1_767_859_512_000
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Makes MP4s of three seconds, as a phone's recorder does: no B-frames, no times in the names.
  private func makeParts(_ options: String...) throws {
    _ = try scratch.directory("parts")
    for part in 0..<2 {
      let source = ["-f", "lavfi", "-i", "testsrc=size=160x120:rate=10:duration=3", "-vf", "hue=h=\(100 * part)"]
      try Tool.output(
        "ffmpeg",
        ["-v", "error"] + source + ["-c:v", "libx264", "-pix_fmt", "yuv420p"] + options
          + [scratch.path("parts/record-\(part).mp4")])
    }
  }

  private func run(_ words: [String]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words, in: scratch.url)
  }

  private func reencode(_ part: Int64, _ more: String...) throws -> Tool.Result {
    let start = "\(Self.startMs + part * 3_000)"
    return try run(
      ["reencode", "parts/record-\(part).mp4", "-o", "out", "-q", "small", "--session", "t", "--start", start] + more)
  }

  @Test func secondPartIsRefusedWithAdviceThatMakesOneSession() throws {
    try makeParts("-profile:v", "baseline")
    #expect(try reencode(0).status == 0)
    let refused = try reencode(1)
    #expect(refused.status == 65, "\(refused.errors)")
    #expect(refused.errors.contains("each named <unix ms of its first picture>.mp4 (this one 1767859515000.mp4)"))
    #expect(refused.errors.contains("run: encoder-worker encode DIRECTORY --session NEW --output DIR"))
    for part in 0..<2 {
      try FileManager.default.moveItem(
        atPath: scratch.path("parts/record-\(part).mp4"),
        toPath: scratch.path("parts/\(Self.startMs + Int64(part) * 3_000).mp4"))
    }
    let imported = try run(["encode", "parts", "--session", "t2", "--output", "out"])
    #expect(imported.status == 0 && imported.text.contains("2 segments, 60 frames, 6.0 s"), "\(imported.errors)")
    #expect(try run(["stitch", "out/t2", "--to", "film.mp4"]).text.contains("6.0 s, 2 segments"))
  }

  @Test func copyingIsNotAdvisedForVideosThatItRefuses() throws {
    try makeParts("-bf", "2", "-g", "30")
    #expect(try reencode(0).status == 0)
    let refused = try reencode(1)
    #expect(refused.status == 65 && !refused.errors.contains("encoder-worker encode"), "\(refused.errors)")
    #expect(refused.errors.contains("name another session with --session"), "\(refused.errors)")
  }

  @Test func otherQualityOfTheSamePartNeedsAnotherOutput() throws {
    try makeParts("-profile:v", "baseline")
    #expect(try reencode(0).status == 0)
    let refused = try reencode(0, "--max-side", "64")
    #expect(refused.status == 65 && refused.errors.hasSuffix("name another output directory\n"), "\(refused.errors)")
  }

  @Test func videosWithoutEventsAreAdvisedToBeNamedByTheirTimeOnly() throws {
    try makeParts("-profile:v", "baseline")
    let refused = try run(["encode", "parts", "--output", "out"])
    #expect(refused.status == 65 && refused.errors.contains("name each <unix ms of its first picture>.mp4"))
    #expect(!refused.errors.contains("segmentId"), "\(refused.errors)")
  }
}
