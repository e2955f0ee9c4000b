import Foundation
import TestSupport
import Testing

/// The worker accepts recorders' batches unchanged. In each form, the same frames give the same pictures at the same
/// times.
@Suite struct RecorderTests {
  static let forms = [
    "plain@1", "native", "sentry-cocoa", "bare-sentry-cocoa/5E0A1F2C-0B7D-4C7E-9E55-7A1D2C3B4A59",
    "sentry-android/replay_0123456789abcdef0123456789abcdef", "openreplay-tar/7281923112-1767859516340.tar.gz",
    "openreplay-frames/7281923112-1767859516340.gz", "openreplay-frames/replay.frames.zst",
    "rejourney-frames/session_1767859512340_0123456789abcdef0123456789abcdef-1767859516340.tar.gz",
    "rejourney-tar/session_1767859512340_0123456789abcdef0123456789abcdef-1767859516340.tar.gz",
    "rejourney-tar-offsets/session_1767859512340_0123456789abcdef0123456789abcdef-1767859516340.tar.gz",
    "rejourney-spill/session_1767859512340_0123456789abcdef0123456789abcdef",
    "named/iso", "named/screenpipe", "zip/stored@1.zip", "zip/deflated@1.zip", "zip/zip64@1.zip", "zip/cp437@1.zip",
    "zip/native.zip",
    "playwright/trace-8.zip", "playwright/trace-10.zip",
    "posthog-export/replay.json", "posthog-export/windows.json.gz", "posthog-export/pairs.jsonl.gz",
    "posthog-requests/ios.json.gz", "posthog-requests/android.jsonl.gz", "mixpanel/replay.json.gz",
    "launchdarkly/replay.json.gz", "rrweb-canvas/replay.jsonl.gz", "screencast/events.jsonl",
    "screencast/parameters.jsonl.gz",
  ]

  @Test func sameFramesInEachFormGiveTheSameVideo() throws {
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

  /// Names of five frames that are a second apart, from 2026-01-08T08:05:12.340Z on, and the options that they need.
  static let namings: [(options: [String], names: [String])] = [
    ([], (2...6).map { "2026-01-08T08-05-1\($0).340Z.jpg" }),
    ([], (2...6).map { "2026-01-08/176785951\($0)340_m1.jpg" }),
    ([], (2...6).map { "2026-01-08/176785951\($0)340.jpg" }),
    ([], (2...6).map { "preview_door-176785951\($0).34.webp" }),
    (["--time-zone", "Europe/Berlin"], (2...6).map { "step_\($0)_20260108@09051\($0)340000.png" }),
    (
      ["--time-zone", "+01:00", "--name-time", "Shot %Y-%m-%d at %H.%M.%S.%L"],
      (2...6).map { "Shot 2026-01-08 at 09.05.1\($0).340" }
    ),
    (["--start", "2026-01-08T08:05:12.340Z", "--fps", "1"], (2...6).map { "frame_\($0).png" }),
    (["--start", "1767859512340", "--interval", "1000"], (8...12).map { "\($0)" }),
    (["--times", "mtime"], (2...6).map { "\($0).jpg" }),
  ]

  @Test func sameFramesUnderEachKindOfNameGiveTheSameVideo() throws {
    let scratch = try ScratchDirectory()
    let plain = try scratch.directory("plain")
    var batches: [(options: [String], path: String)] = [([], plain)]
    for index in 0..<5 {
      let image = try Fixture("exact-1fps").bytes(String(format: "%04d.jpg", index))
      let timeMs = 1_767_859_512_340 + 1_000 * index
      try scratch.file("plain/\(timeMs).jpg", image)
      for (number, naming) in Self.namings.enumerated() {
        let path = "named-\(number)/" + naming.names[index]
        try FileManager.default.createDirectory(
          atPath: (scratch.path(path) as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try scratch.file(path, image)
        try FileManager.default.setAttributes(
          [.modificationDate: Date(timeIntervalSince1970: Double(timeMs) / 1_000)], ofItemAtPath: scratch.path(path))
      }
    }
    batches += Self.namings.enumerated().map { ($0.element.options, scratch.path("named-\($0.offset)")) }
    var videos: Set<String> = []
    for (number, batch) in batches.enumerated() {
      let output = scratch.path("\(number)")
      // Recorders of part J capture on change; the plain form uses the same setting here, to give the same batch.
      let options = ["--capture", "onChange", "--output", output] + batch.options
      let result = try Tool.run(EncoderWorker.path, ["encode", batch.path] + options)
      try #require(result.status == 0, "\(batch): \(result.errors)")
      let name = try #require(try names(in: output).first { !$0.hasPrefix(".") })
      let session = try PublishedSession(output + "/" + name)
      #expect(session.manifests.map(\.startMs) == [1_767_859_512_340], "\(batch)")
      #expect(session.manifests[0].frames.map(\.holdMs) == [1_000, 1_000, 1_000, 1_000, 1_000], "\(batch)")
      let packets = try Tool.output(
        "ffmpeg",
        ["-v", "error", "-i", session.video(session.manifests[0]), "-map", "0:v", "-c", "copy", "-f", "framemd5", "-"])
      videos.insert(String(decoding: packets, as: UTF8.self))
    }
    #expect(videos.count == 1)
  }

  @Test func canvasRecordingWithWebPFramesIsEncoded() throws {
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
