import Foundation
import TestSupport
import Testing

/// Batches of recorders are taken as they are: in each form the same frames give the same pictures at the same times.
@Suite struct RecorderTests {
  static let forms = [
    "plain@1", "native", "sentry-cocoa", "bare-sentry-cocoa/5E0A1F2C-0B7D-4C7E-9E55-7A1D2C3B4A59",
    "sentry-android/replay_0123456789abcdef0123456789abcdef", "openreplay-tar/7281923112-1767859516340.tar.gz",
    "openreplay-frames/7281923112-1767859516340.gz", "openreplay-frames/replay.frames.zst",
    "rejourney-frames/session_1767859512340_0123456789abcdef0123456789abcdef-1767859516340.tar.gz",
    "rejourney-tar/session_1767859512340_0123456789abcdef0123456789abcdef-1767859516340.tar.gz",
    "rejourney-tar-offsets/session_1767859512340_0123456789abcdef0123456789abcdef-1767859516340.tar.gz",
    "rejourney-spill/session_1767859512340_0123456789abcdef0123456789abcdef",
    "posthog-export/replay.json", "posthog-export/windows.json.gz", "posthog-export/pairs.jsonl.gz",
    "posthog-requests/ios.json.gz", "posthog-requests/android.jsonl.gz", "mixpanel/replay.json.gz",
    "launchdarkly/replay.json.gz", "rrweb-canvas/replay.jsonl.gz", "screencast/events.jsonl",
    "screencast/parameters.jsonl.gz",
  ]

  @Test func theSameFramesInEachFormAreTheSameVideo() throws {
    let scratch = try ScratchDirectory()
    var videos: Set<String> = []
    for (number, form) in Self.forms.enumerated() {
      let output = scratch.path("\(number)")
      let result = try EncoderWorker.run("encode", Fixture("formats/" + form).path, "--output", output)
      try #require(result.status == 0, "\(form): \(result.errors)")
      let name = try #require(try names(in: output).first { !$0.hasPrefix(".") })
      let session = try PublishedSession(output + "/" + name)
      #expect(session.manifests.map(\.startMs) == [1_767_859_512_340], "\(form)")
      #expect(session.manifests[0].frames.map(\.holdMs) == [1_000, 1_000, 1_000, 1_000, 1_000], "\(form)")
      #expect(try EncoderWorker.run("verify", session.path).status == 0)
      let packets = try Tool.output(
        "ffmpeg",
        ["-v", "error", "-i", session.video(session.manifests[0]), "-map", "0:v", "-c", "copy", "-f", "framemd5", "-"])
      videos.insert(String(decoding: packets, as: UTF8.self))
    }
    #expect(videos.count == 1)
  }

  @Test func canvasFramesAreWebP() throws {
    let scratch = try ScratchDirectory()
    let result = try EncoderWorker.run(
      "encode", Fixture("formats/openreplay-canvas/1767859512340_7.webp.frames").path, "--output",
      scratch.path("output"))
    try #require(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(scratch.path("output/1767859512340_7"))
    let pictures = try Pixels.decode(session.video(session.manifests[0]), width: 180, height: 320)
    #expect(pictures.map(\.number) == [0, 1, 2, 3, 4])
  }
}
