import Foundation
import TestSupport
import Testing

/// A screencast that a browser wrote: each frame is at its instant and matches its capture.
@Suite struct ScreencastTests {
  /// A recorder's own file, in the directory RECORDER_SAMPLES. Nil unless that is set; `make test-corpus` sets it.
  private static let sample = ProcessInfo.processInfo.environment["RECORDER_SAMPLES"].map { $0 + "/screencast.jsonl" }

  private struct Line: Decodable {
    struct Parameters: Decodable {
      struct Metadata: Decodable { let timestamp: Decimal }
      let data: Data
      let metadata: Metadata
    }
    let params: Parameters

    var timeMs: Int64 {
      var (exact, rounded) = (params.metadata.timestamp * 1_000, Decimal())
      NSDecimalRound(&rounded, &exact, 0, .plain)
      return NSDecimalNumber(decimal: rounded).int64Value
    }
  }

  @Test(.enabled(if: sample != nil, "RECORDER_SAMPLES names no directory of recorders' files"))
  func realScreencastGivesTheSameVideoAsItsImagesInANativeBatch() throws {
    let scratch = try ScratchDirectory()
    let path = try #require(Self.sample)
    let text = try Data(contentsOf: URL(fileURLWithPath: path))
    let lines = try text.split(separator: 0x0A).map { try JSONDecoder().decode(Line.self, from: $0) }
    _ = try scratch.directory("native")
    for line in lines { try scratch.file("native/\(line.timeMs).jpg", Array(line.params.data)) }
    try scratch.file("native/batch.json", Array(#"{"version":1,"capture":"onChange"}"#.utf8))
    var films: [[String]] = []
    for batch in [path, scratch.path("native")] {
      let output = scratch.path("output-\(films.count)")
      let result = try EncoderWorker.run("encode", batch, "--output", output, "--session", "s")
      try #require(result.status == 0, "\(result.errors)")
      let session = try PublishedSession(output + "/s")
      #expect(session.manifests.flatMap(\.refused).isEmpty)
      let frames = session.manifests.flatMap(\.frames).filter { $0.status == "captured" }
      #expect(frames.map(\.timeMs) == lines.map(\.timeMs))
      #expect(try EncoderWorker.run("verify", session.path).status == 0)
      films.append(
        try session.manifests.map { manifest in
          let packets = try Tool.output(
            "ffmpeg",
            ["-v", "error", "-i", session.video(manifest), "-map", "0:v", "-c", "copy", "-f", "framemd5", "-"])
          return "\(manifest.startMs) \(manifest.endMs) \(manifest.frames.map(\.holdMs))\n"
            + String(decoding: packets, as: UTF8.self)
        })
    }
    #expect(films[0] == films[1])
  }
}
