import Foundation
import TestSupport
import Testing

/// Labels from the producer's file to the films: stock tools find each caption and each chapter at its instant.
@Suite struct LabelFilmTests {
  private static let start: Int64 = 1_767_859_512_340
  private static let labels: [(offsetMs: Int64, rest: String)] = [
    (-2_000, #""kind":"step","text":"Before""#), (500, #""kind":"step","text":"Add","endMs":1767859512940"#),
    (1_250, #""kind":"error","text":"It <b>failed</b> & ended\nhere","level":"error""#),
    (2_000, #""kind":"caption","text":"اختبار","endMs":1767859515840"#), (2_500, #""kind":"log","text":"a line""#),
    (4_000, #""text":"Look here""#), (99_000, #""kind":"step","text":"After""#),
  ]

  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Writes a batch of six pictures a second apart.
  private func batch(_ name: String = "walk", labels: Bool = true) throws -> String {
    let folder = try scratch.directory(name)
    for number in 0..<6 {
      try FileManager.default.copyItem(
        atPath: Fixture("gap").path + "/000\(number % 2).jpg",
        toPath: "\(folder)/\(Self.start + 1_000 * Int64(number)).jpg")
    }
    if labels {
      let lines = Self.labels.map { #"{"timeMs":\#(Self.start + $0.offsetMs),\#($0.rest)}"# }
      try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: folder + "/labels.jsonl"))
    }
    return folder
  }

  private func published(_ batch: String, in output: String, _ options: String...) throws -> String {
    let result = try Tool.run(EncoderWorker.path, ["encode", batch, "--output", scratch.path(output)] + options)
    try #require(result.status == 0, "\(result.errors)")
    return scratch.path(output) + "/" + URL(fileURLWithPath: batch).lastPathComponent
  }

  private func stitch(_ session: String, to name: String, _ options: String...) throws -> String {
    let result = try Tool.run(EncoderWorker.path, ["stitch", session, "--to", scratch.path(name)] + options)
    try #require(result.status == 0, "\(result.errors)")
    return scratch.path(name)
  }

  private func files(_ session: String, _ suffix: String) throws -> [Data] {
    try FileManager.default.contentsOfDirectory(atPath: session).filter { $0.hasSuffix(suffix) }.sorted()
      .map { try Data(contentsOf: URL(fileURLWithPath: session + "/" + $0)) }
  }

  private func manifestLabels(_ session: String) throws -> [(start: Int64, labels: [[String: Any]])] {
    try files(session, ".json").compactMap { data in
      let json = try JSONSerialization.jsonObject(with: data) as? [String: Any]
      guard let start = json?["startMs"] as? Int64, json?["frames"] is [Any], json?["part"] != nil else { return nil }
      return (start, json?["labels"] as? [[String: Any]] ?? [])
    }.sorted { $0.start < $1.start }
  }

  /// Returns the captions of a film as stock ffmpeg extracts them: start, end and text.
  private func captions(_ film: String) throws -> [String] {
    let tracks = try Probe(film).streams.filter { $0.codecType == "subtitle" }
    let output = try Tool.output(
      "ffmpeg", ["-v", "error", "-i", film, "-map", "0:s:\(tracks.count - 1)", "-f", "webvtt", "-"])
    return String(decoding: output, as: UTF8.self).components(separatedBy: "\n\n").dropFirst()
      .map { $0.trimmingCharacters(in: .newlines) }.filter { !$0.isEmpty }
  }

  /// The captions of the stream are those of the film, and stock ffmpeg reads each file of them.
  @Test func streamHasTheCaptionsOfTheFilm() throws {
    let session = try published(batch(), in: "out")
    let (film, stream) = (try stitch(session, to: "film.mp4"), try stitch(session, to: "hls", "--format", "hls"))
    let shown = try Conformance.captions(ofPlaylistsIn: stream)
    let expected: [(fromMs: Int64, untilMs: Int64, text: String)] = [
      (0, 500, "Before"), (500, 1_000, "Add"), (1_000, 6_000, "After"),
      (1_250, 2_000, "It &lt;b&gt;failed&lt;/b&gt; &amp; ended\nhere"), (2_000, 3_500, "اختبار"),
    ]
    let lines = expected.map { "\(Self.start + $0.fromMs)–\(Self.start + $0.untilMs) \($0.text)" }
    #expect(shown == lines)
    #expect(try captions(film).count >= shown.count)
    let files = try FileManager.default.contentsOfDirectory(atPath: stream).filter { $0.hasPrefix("captions-1") }
    for file in files {
      let read = try Tool.output("ffmpeg", ["-v", "error", "-i", stream + "/" + file, "-f", "webvtt", "-"])
      #expect(String(decoding: read, as: UTF8.self).contains("After"))
    }
    let plain = try stitch(published(batch("plain/walk", labels: false), in: "bare"), to: "plain", "--format", "hls")
    #expect(try !FileManager.default.contentsOfDirectory(atPath: plain).contains { $0.hasPrefix("captions") })
  }

  @Test func clipOfALabelIsThatOfItsInstants() throws {
    let session = try published(batch(), in: "out")
    func same(_ label: [String], _ instants: [String]) throws -> Bool {
      let made = try [label, instants].enumerated().map { number, options in
        let film = scratch.path("\(UUID().uuidString)-\(number).mp4")
        let result = try Tool.run(EncoderWorker.path, ["stitch", session, "--to", film] + options)
        try #require(result.status == 0, "\(result.errors)")
        return try Data(contentsOf: URL(fileURLWithPath: film))
      }
      return made[0] == made[1]
    }
    // Its span; and a length.
    #expect(try same(["--from-label", "add"], ["--from", "+0.5s", "--to-time", "+0.6s"]))
    #expect(try same(["--from-label", "add", "--duration", "2s"], ["--from", "+0.5s", "--duration", "2s"]))
    #expect(try same(["--from-label", "اختبار", "--to-time", "+3s"], ["--from", "+2s", "--to-time", "+3s"]))
    func refusal(_ options: String...) throws -> (Int32, String) {
      let result = try Tool.run(EncoderWorker.path, ["stitch", session, "--to", scratch.path("no.mp4")] + options)
      return (result.status, result.errors)
    }
    let none = try refusal("--from-label", "nowhere")
    #expect(none.0 == 65 && none.1.contains("'Add' at 2026-01-08T08:05:12.840Z (1767859512840)"), "\(none)")
    let several = try refusal("--from-label", "e")
    #expect(several.0 == 65 && several.1.contains("'Before' at"), "\(several)")
    for options in [["--from", "+1s"], ["--format", "hls"]] {
      let result = try Tool.run(
        EncoderWorker.path, ["stitch", session, "--to", scratch.path("no.mp4"), "--from-label", "Add"] + options)
      #expect(result.status == 64 && result.errors.contains("--from-label"), "\(result.errors)")
    }
  }

  @Test func labelsChangeNoPicture() throws {
    let (with, without) = (
      try published(batch(), in: "with"), try published(batch("plain/walk", labels: false), in: "out")
    )
    let none = try published(batch("none/walk"), in: "bare", "--no-labels")
    #expect(try files(with, ".mp4") == files(without, ".mp4") && files(none, ".mp4") == files(without, ".mp4"))
    #expect(try files(none, ".json") == files(without, ".json"))
    #expect(
      try manifestLabels(with).map { $0.labels.map { $0["text"] as? String } } == [
        ["Before", "Add", "It <b>failed</b> & ended\nhere", "اختبار", "a line", "Look here"], ["After"],
      ])
    for entry in try manifestLabels(with).flatMap(\.labels) {
      let known = Self.labels.contains { Self.start + $0.offsetMs == entry["timeMs"] as? Int64 }
      #expect(known, "\(entry)")
    }
    #expect(try EncoderWorker.run("verify", with).status == 0)
    // The film without labels has the bytes that it had.
    let (labelled, plain) = (try stitch(with, to: "with.mp4"), try stitch(without, to: "without.mp4"))
    #expect(try Probe(plain).streams.count == 2 && Probe(labelled).streams.count == 3)
    #expect(try Probe(labelled).packets(of: 0).map(\.pts) == Probe(plain).packets(of: 0).map(\.pts))
  }

  @Test func captionsAndChaptersAreAtTheirInstants() throws {
    let session = try published(batch(), in: "output")
    let film = try stitch(session, to: "film.mp4", "--captions", scratch.path("film.vtt"))
    #expect(try Conformance.faults(ofMovie: film) == [])
    // At most one sample at a time: a longer text goes on beside the next one.
    #expect(
      try captions(film) == [
        "00:00.000 --> 00:00.500\nBefore", "00:00.500 --> 00:01.000\nAdd", "00:01.000 --> 00:01.250\nAfter",
        "00:01.250 --> 00:02.000\nAfter\nIt <b>failed</b> & ended\nhere",
        "00:02.000 --> 00:03.500\nAfter\nاختبار", "00:03.500 --> 00:06.000\nAfter",
      ])
    let text = try String(contentsOfFile: scratch.path("film.vtt"), encoding: .utf8)
    #expect(
      text == """
        WEBVTT

        00:00:00.000 --> 00:00:00.500
        Before

        00:00:00.500 --> 00:00:01.000
        Add

        00:00:01.000 --> 00:00:06.000
        After

        00:00:01.250 --> 00:00:02.000
        It &lt;b&gt;failed&lt;/b&gt; &amp; ended
        here

        00:00:02.000 --> 00:00:03.500
        اختبار

        """)
    struct Chapters: Decodable {
      struct Chapter: Decodable {
        let startTime: String
        let tags: [String: String]
      }
      let chapters: [Chapter]
    }
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let chapters = try decoder.decode(
      Chapters.self, from: Tool.output("ffprobe", ["-v", "error", "-of", "json", "-show_chapters", film])
    ).chapters
    #expect(chapters.map(\.startTime) == ["0.000000", "0.500000", "4.000000", "5.999000"])
    #expect(
      chapters.map { $0.tags["title"]?.components(separatedBy: ",").first } == ["Before", "Add", "Look here", "After"])
  }

  /// A label at the edge of a part is in one of two parts that meet there.
  @Test func partsShowTheirLabels() throws {
    let session = try published(batch(), in: "output")
    let vtt = scratch.path("part.vtt")
    _ = try stitch(session, to: "part.mp4", "--from", "+0.5s", "--to-time", "+1.5s", "--captions", vtt)
    #expect(
      try String(contentsOfFile: vtt, encoding: .utf8) == """
        WEBVTT

        00:00:00.000 --> 00:00:00.750
        Add

        00:00:00.750 --> 00:00:01.000
        It &lt;b&gt;failed&lt;/b&gt; &amp; ended
        here

        """)
    _ = try stitch(session, to: "fast.mp4", "--speed", "2", "--captions", vtt)
    #expect(try String(contentsOfFile: vtt, encoding: .utf8).contains("00:00:01.000 --> 00:00:01.750\nاختبار"))
    _ = try stitch(session, to: "none.mp4", "--from", "+4.5s", "--captions", vtt)
    #expect(try String(contentsOfFile: vtt, encoding: .utf8) == "WEBVTT\n")
  }

  @Test func playlistsNameStepsAndMarks() throws {
    let session = try published(batch(), in: "output")
    let stream = try stitch(session, to: "hls", "--format", "hls")
    let text = try String(contentsOfFile: stream + "/session.m3u8", encoding: .utf8)
    let ranges = text.split(separator: "\n").filter { $0.hasPrefix("#EXT-X-DATERANGE") }
    #expect(
      ranges.count == 4 && ranges.contains { $0.contains(#"X-TITLE="Add""#) && $0.contains("DURATION=0.1") },
      "\(ranges)")
  }

  /// `film` reads the labels of a folder, and of a file that the user names.
  @Test func filmOfAFolderHasItsCaptions() throws {
    let file = scratch.path("words.srt")
    try Data("1\n00:00:01,000 --> 00:00:02,500\nHello\n".utf8).write(to: URL(fileURLWithPath: file))
    let (film, vtt) = (scratch.path("film.mp4"), scratch.path("film.vtt"))
    let folder = try batch("plain", labels: false)
    let result = try EncoderWorker.run(
      "film", folder, "--labels", file, "--to", film, "--captions", vtt)
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors.contains("its times count from the first picture"), "\(result.errors)")
    #expect(try captions(film) == ["00:01.000 --> 00:02.500\nHello"])
    #expect(try String(contentsOfFile: vtt, encoding: .utf8).contains("00:00:01.000 --> 00:00:02.500\nHello"))
    let two = try EncoderWorker.run("film", folder, folder, "--labels", file, "--to", film)
    #expect(two.status == 64 && two.errors.contains("--labels belongs to one input"), "\(two.errors)")
    let bad = try EncoderWorker.run("film", folder, "--labels", scratch.path("none"), "--to", film)
    #expect(bad.status == 64 && bad.errors.contains("no such file"), "\(bad.errors)")
    let poster = try EncoderWorker.run("film", folder, "--to", scratch.path("a.png"), "--captions", vtt)
    #expect(poster.status == 64 && poster.errors.contains("a single picture has no film time"), "\(poster.errors)")
  }

  /// A folder that becomes several batches of a spool: each batch has its labels.
  @Test func enqueuedFoldersHaveTheirLabels() throws {
    let spool = scratch.path("spool")
    let result = try EncoderWorker.run(
      "enqueue", batch(), "--spool", spool, "--session", "walk", "--limit", "frames=2")
    try #require(result.status == 0, "\(result.errors)")
    try #require(EncoderWorker.run("run", "--spool", spool, "--drain").status == 0)
    let all = try manifestLabels(spool + "/output/walk")
    #expect(all.count == 3)
    #expect(
      all.map { $0.labels.map { $0["text"] as? String } } == [
        ["Before", "Add", "It <b>failed</b> & ended\nhere"], ["اختبار", "a line"], ["Look here", "After"],
      ])
    let file = scratch.path("steps.csv")
    try Data("1767859512840,One\n".utf8).write(to: URL(fileURLWithPath: file))
    let named = try EncoderWorker.run(
      "enqueue", batch("other", labels: false), "--spool", spool, "--session", "other", "--labels", file)
    try #require(named.status == 0, "\(named.errors)")
    try #require(EncoderWorker.run("run", "--spool", spool, "--drain").status == 0)
    #expect(try manifestLabels(spool + "/output/other").flatMap(\.labels).map { $0["text"] as? String } == ["One"])
  }

  /// Videos that are copied have their labels, too.
  @Test func finishedSegmentsHaveTheirLabels() throws {
    let session = try published(batch("plain/walk", labels: false), in: "output")
    let folder = try batch("videos/walk")
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasSuffix(".jpg") {
      try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
    }
    for name in try FileManager.default.contentsOfDirectory(atPath: session) where name.hasSuffix(".mp4") {
      try FileManager.default.copyItem(atPath: "\(session)/\(name)", toPath: "\(folder)/\(name)")
    }
    let copied = try published(folder, in: "copied", "--session", "walk")
    #expect(
      try manifestLabels(copied).map { $0.labels.map { $0["text"] as? String } } == [
        ["Before", "Add", "It <b>failed</b> & ended\nhere", "اختبار", "a line", "Look here"], ["After"],
      ])
    #expect(try files(copied, ".mp4") == files(session, ".mp4"))
  }

  /// Labels of one input would be those of each folder.
  @Test func labelsOfSeveralFoldersAreRefused() throws {
    for part in ["part1", "part2"] {
      let folder = try scratch.directory("job/\(part)")
      for number in 0..<2 {
        try FileManager.default.copyItem(
          atPath: Fixture("gap").path + "/000\(number).jpg", toPath: "\(folder)/frame_000\(number).jpg")
      }
    }
    let file = scratch.path("words.csv")
    try Data("0.5,Hello\n".utf8).write(to: URL(fileURLWithPath: file))
    let result = try EncoderWorker.run(
      "film", scratch.path("job"), "--fps", "2", "--labels", file, "--to", scratch.path("job.mp4"))
    #expect(result.status == 64 && result.errors.contains("--labels belongs to one input"), "\(result.errors)")
    let film = try stitch(published(batch(), in: "output"), to: "film.mp4")
    let recording = try EncoderWorker.run("film", film, "--labels", file, "--to", scratch.path("again.mp4"))
    #expect(recording.status == 64 && recording.errors.contains("--labels is for pictures"), "\(recording.errors)")
  }

  /// Programs and models read what happened between two pictures.
  @Test func picturesHaveTheirLabels() throws {
    let session = try published(batch(), in: "output")
    let (folder, lines) = (scratch.path("pictures"), scratch.path("pictures/pictures.jsonl"))
    let result = try EncoderWorker.run("pictures", session, "--to", folder)
    try #require(result.status == 0, "\(result.errors)")
    let texts = try String(contentsOfFile: lines, encoding: .utf8).split(separator: "\n").map { line in
      let json = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return (json?["labels"] as? [[String: Any]] ?? []).compactMap { $0["text"] as? String }
    }
    #expect(
      texts.prefix(3) == [["Add"], ["It <b>failed</b> & ended\nhere"], ["اختبار", "a line"]], "\(texts)")
  }

  @Test func archivesAndFurtherBatchesKeepLabels() throws {
    let session = try published(batch(), in: "output")
    let archive = scratch.path("archive")
    let result = try EncoderWorker.run("reencode", session, "--quality", "archive", "--output", archive)
    #expect(result.status == 0, "\(result.errors)")
    #expect(try manifestLabels(archive + "/walk").flatMap(\.labels).map { $0["text"] as? String }.count == 7)
    #expect(try EncoderWorker.run("verify", archive + "/walk").status == 0)
    let vtt = scratch.path("a.vtt")
    _ = try stitch(archive + "/walk", to: "a.mp4", "--captions", vtt)
    let first = try String(contentsOfFile: vtt, encoding: .utf8)
    _ = try stitch(session, to: "b.mp4", "--captions", vtt)
    #expect(try String(contentsOfFile: vtt, encoding: .utf8) == first)
  }
}
