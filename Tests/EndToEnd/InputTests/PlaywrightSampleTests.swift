import Foundation
import TestSupport
import Testing

/// A trace that Playwright wrote: each frame is at its instant and matches its capture.
@Suite struct PlaywrightSampleTests {
  /// A recorder's own file, in the directory RECORDER_SAMPLES. Nil unless that is set; `make test-corpus` sets it.
  private static let sample = ProcessInfo.processInfo.environment["RECORDER_SAMPLES"].map {
    $0 + "/playwright-trace.zip"
  }

  private struct Frame {
    let page: String
    let file: String
    let timeMs: Int64
  }

  /// A line of the trace.
  private struct Event: Decodable { let type: String? }

  /// A line of the type `screencast-frame`.
  private struct ScreencastFrame: Decodable {
    let pageId, file: String?
    let frameSwapWallTime: Double?
  }

  /// Returns the frames in the trace, with a reader other than the program's.
  private func frames(_ trace: String) throws -> [Frame] {
    let decoder = JSONDecoder()
    return try Data(contentsOf: URL(fileURLWithPath: trace)).split(separator: 0x0A).compactMap { line in
      guard try decoder.decode(Event.self, from: line).type == "screencast-frame" else { return nil }
      let frame = try decoder.decode(ScreencastFrame.self, from: line)
      guard let page = frame.pageId, let file = frame.file, let time = frame.frameSwapWallTime else { return nil }
      return Frame(page: String(page.dropFirst("page@".count)), file: file, timeMs: Int64(time.rounded()))
    }
  }

  @Test(.enabled(if: sample != nil, "RECORDER_SAMPLES names no directory of recorders' files"))
  func realTraceShowsEachFrameAtItsInstant() throws {
    let scratch = try ScratchDirectory()
    let path = try #require(Self.sample)
    let unpacked = try scratch.directory("trace")
    try Tool.output(Tool.python, ["-m", "zipfile", "-e", path, unpacked])
    let frames = try frames(unpacked + "/trace.trace")
    try #require(frames.count == 30)
    // The same frames as a native batch.
    let list = frames.map { #"{"file":"\#(URL(fileURLWithPath: $0.file).lastPathComponent)","timeMs":\#($0.timeMs)}"# }
    _ = try scratch.directory("native")
    for frame in frames {
      let name = URL(fileURLWithPath: frame.file).lastPathComponent
      let image = try Data(contentsOf: URL(fileURLWithPath: unpacked + "/" + frame.file))
      try scratch.file("native/" + name, Array(image))
    }
    let description = #"{"version":1,"capture":"onChange","frames":[\#(list.joined(separator: ","))]}"#
    try scratch.file("native/batch.json", Array(description.utf8))

    var films: [[String]] = []
    for (batch, session) in [
      (path, "s." + frames[0].page), (unpacked, "s." + frames[0].page), (scratch.path("native"), "s"),
    ] {
      let output = scratch.path("output-\(films.count)")
      let result = try EncoderWorker.run("encode", batch, "--output", output, "--session", "s")
      try #require(result.status == 0, "\(result.errors)")
      #expect(try names(in: output).filter { !$0.hasPrefix(".") } == [session])
      let published = try PublishedSession(output + "/" + session)
      #expect(try EncoderWorker.run("verify", published.path).status == 0)
      films.append(
        try published.manifests.map { manifest in
          let packets = try Tool.output(
            "ffmpeg",
            ["-v", "error", "-i", published.video(manifest), "-map", "0:v", "-c", "copy", "-f", "framemd5", "-"])
          return "\(manifest.startMs) \(manifest.endMs) \(manifest.frames.map(\.holdMs))\n"
            + String(decoding: packets, as: UTF8.self)
        })
    }
    #expect(films[0] == films[1] && films[0] == films[2])
    try expectPictures(of: frames, in: PublishedSession(scratch.path("output-0/s.\(frames[0].page)")), unpacked)
  }

  /// Expects the manifest to list each frame at its instant, and the sample that starts there to match its picture.
  private func expectPictures(of frames: [Frame], in session: PublishedSession, _ unpacked: String) throws {
    let latest = Dictionary(frames.map { ($0.timeMs, $0) }, uniquingKeysWith: { $1 })
    let captured = session.manifests.flatMap(\.frames).filter { $0.status == "captured" }
    #expect(captured.map(\.timeMs) == latest.keys.sorted())
    for manifest in session.manifests {
      let (width, height) = (manifest.codedWidth, manifest.codedHeight)
      let pictures = try Pixels.decode(session.video(manifest), width: width, height: height)
      let starts = try Probe(session.video(manifest)).packets(of: 0).map(\.pts)
      for (frame, offset) in zip(manifest.frames, manifest.offsetsMs) {
        let sample = try #require(starts.firstIndex(of: offset * 90))
        let file = try #require(latest[frame.timeMs]).file
        #expect(frame.source == URL(fileURLWithPath: file).lastPathComponent)
        let image = try Pixels.decode(
          unpacked + "/" + file, width: width, height: height, options: ["-vf", "scale=\(width):\(height)"])
        #expect(pictures[sample].difference(to: image[0]) < 1.5, "\(frame.source)")
      }
    }
  }
}
