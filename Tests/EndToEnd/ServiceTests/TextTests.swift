import Foundation
import TestSupport
import Testing

/// `text` and `run --text` read the words in published pictures; `serve` finds them.
@Suite(.enabled(if: Tool.readsText, "tesseract is not installed: scripts/setup test"))
struct TextTests {
  private static let start = 1_767_859_512_340
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private struct Text: Decodable {
    struct Word: Decodable, Equatable {
      let text: String
      let fromMs, untilMs: Int64
      let x, y, width, height, confidence: Int
    }

    let format, session, file, engine, language: String
    let words: [Word]
    let pictures: Int
    let unreadMs: [Int64]
  }

  private struct Answer: Decodable {
    struct Result: Decodable {
      let session, text, url, instant: String
      let unixMs: Int64
    }

    let results: [Result]
    let sessions, segments, sessionsWithoutAllText: Int
    let complete: Bool
  }

  private struct Report: Decodable { let segments, written, pictures, words: Int }

  /// Makes a batch of pictures of 640×480, one a second. Each has lines of words, 80 pixels apart; masks are those of all frames.
  private func batch(_ name: String, _ pictures: [[String]], masks: String = "", at second: Int = 0) throws -> String {
    let path = try scratch.directory(name)
    let frames = try pictures.enumerated().map { number, lines in
      var picture = DrawnText(width: 640, height: 480)
      for (index, line) in lines.enumerated() { picture.write(line, x: 40, y: 40 + 80 * index) }
      try scratch.file("\(name)/\(number).png", picture.png)
      return #"{"file":"\#(number).png","timeMs":\#(Self.start + 1_000 * (second + number))\#(masks)}"#
    }
    let json = #"{"version":1,"session":"s","frames":[\#(frames.joined(separator: ","))]}"#
    try scratch.file(name + "/batch.json", Array(json.utf8))
    return path
  }

  private static let masked = #","masks":[{"x":0,"y":190,"width":640,"height":80}]"#
  private static let pictures = [
    ["violet", "order"], ["violet", "order", "secret"], ["violet", "order", "secret"], ["violet", "", "secret"],
    ["violet", "number", "secret"], ["violet", "number"], ["violet", "number"],
  ]

  private func encode(_ batch: String) throws -> PublishedSession {
    try EncoderWorker.encode(Fixture(file: batch), into: scratch)
  }

  @discardableResult
  private func read(_ session: PublishedSession, _ options: String...) throws -> Report {
    let run = try Tool.run(EncoderWorker.path, ["text", session.path, "--json"] + options)
    try #require(run.status == 0, "\(run.errors)")
    return try run.json(as: Report.self)
  }

  private func texts(in path: String) throws -> [Text] {
    try names(in: path).filter { $0.hasSuffix(".text.json") }.map { name in
      try JSONDecoder().decode(Text.self, from: Data(contentsOf: URL(fileURLWithPath: path + "/" + name)))
    }
  }

  @Test func wordsHaveTheirInstants() throws {
    let session = try encode(batch("s", Self.pictures))
    let report = try read(session)
    #expect(report.segments == 2 && report.written == 2)
    let texts = try texts(in: session.path)
    #expect(texts.map(\.session) == ["s", "s"] && texts.map(\.file) == session.manifests.map(\.file))
    let times = texts[0].words.map { "\($0.text) \(Int($0.fromMs) - Self.start)-\(Int($0.untilMs) - Self.start)" }
    #expect(times == ["violet 0-5000", "order 0-3000", "secret 1000-5000", "number 4000-5000"])
    #expect(texts[1].words.map(\.text) == ["violet", "number"])
    // A picture without a change is not read: three of five, and the first of the next segment.
    #expect(texts.map(\.pictures) == [4, 1])
    let secret = try #require(texts[0].words.first { $0.text == "secret" })
    #expect((36...44).contains(secret.x) && (196...204).contains(secret.y))
  }

  @Test func secondCallChangesNothingAndAgainReadsAll() throws {
    let session = try encode(batch("s", Self.pictures))
    try read(session)
    let before = try snapshot(of: session.path)
    #expect(try read(session).written == 0)
    #expect(try snapshot(of: session.path) == before)
    #expect(try read(session, "--again").written == 2)
    #expect(try snapshot(of: session.path).mapValues(\.bytes) == before.mapValues(\.bytes))
    // A damaged file is written again, a missing one, too.
    let files = try names(in: session.path).filter { $0.hasSuffix(".text.json") }
    try Data("{".utf8).write(to: URL(fileURLWithPath: session.path + "/" + files[0]))
    #expect(try Tool.run(EncoderWorker.path, ["verify", session.path]).status == 65)
    try FileManager.default.removeItem(atPath: session.path + "/" + files[1])
    #expect(try read(session).written == 2)
    #expect(try snapshot(of: session.path).mapValues(\.bytes) == before.mapValues(\.bytes))
    #expect(try Tool.run(EncoderWorker.path, ["verify", session.path]).status == 0)
  }

  @Test func nothingIsReadUnderAMask() throws {
    let session = try encode(batch("s", Self.pictures, masks: Self.masked))
    try read(session)
    let words = try texts(in: session.path).flatMap(\.words).map(\.text)
    #expect(words.contains("violet") && !words.contains("secret"))
  }

  @Test func serveFindsTheInstant() throws {
    let session = try encode(batch("s", Self.pictures))
    let output = URL(fileURLWithPath: session.path).deletingLastPathComponent().path
    let server = try RunningServer(["serve", output])
    func answer(_ query: String) throws -> Answer {
      let reply = try server.get("/search.json?text=" + query)
      #expect(reply.status == 200, "\(reply.text)")
      return try JSONDecoder().decode(Answer.self, from: reply.body)
    }
    let none = try answer("number")
    #expect(none.results.isEmpty && none.sessionsWithoutAllText == 1 && none.segments == 0)
    try read(session)
    let found = try answer("NUMB")
    #expect(found.results.map(\.unixMs) == [Int64(Self.start + 4_000)] && found.complete)
    #expect(found.results.map(\.url) == ["/sessions/s/#t=\(Self.start + 4_000)"])
    #expect(try answer("violet+number").results.map(\.unixMs) == [Int64(Self.start + 4_000)])
    #expect(try answer("order+number").results.isEmpty)
    #expect(try server.get("/search.json?text=").status == 400)
    #expect(try server.get("/search.json").status == 400)
    let name = session.manifests[0].file.replacing(".mp4", with: ".text.json")
    #expect(try server.get("/sessions/s/" + name).status == 200)
    // After the deletion nobody finds it, and no file has it.
    #expect(try Tool.run(EncoderWorker.path, ["delete", "s", "--output", output]).status == 0)
    #expect(try answer("number").results.isEmpty)
    for (name, file) in try snapshot(of: output) {
      #expect(file.bytes.firstRange(of: Data("violet".utf8)) == nil, "\(name)")
    }
  }

  @Test func workerReadsWhatItPublishesAndCompletesTheSession() throws {
    let spool = scratch.path("spool")
    func run(_ batch: String, _ options: [String]) throws -> Tool.Result {
      try #require(Tool.run(EncoderWorker.path, ["enqueue", "--spool", spool, batch]).status == 0)
      return try Tool.run(EncoderWorker.path, ["run", "--spool", spool, "--drain"] + options)
    }
    // Without words, as after a crash between publication and text.
    #expect(try run(batch("one", Array(Self.pictures[0..<5])), []).status == 0)
    let path = spool + "/output/s"
    #expect(try texts(in: path).isEmpty)
    let later = try run(batch("two", Array(Self.pictures[5...]), at: 5), ["--text"])
    #expect(later.status == 0 && later.errors.contains("become searchable"), "\(later.errors)")
    #expect(
      try texts(in: path).map { $0.words.map(\.text).sorted() } == [
        ["number", "order", "secret", "violet"], ["number", "violet"],
      ])
    #expect(try Tool.run(EncoderWorker.path, ["verify", path]).status == 0)
  }

  @Test func missingTesseractIsAUsageErrorBeforeAnythingIsMade() throws {
    let spool = scratch.path("none")
    let run = try Tool.run(
      "/usr/bin/env", ["PATH=" + scratch.path, EncoderWorker.path, "run", "--spool", spool, "--drain", "--text"])
    #expect(run.status == 64 && run.errors.contains("install the package tesseract-ocr"), "\(run.errors)")
    #expect(!FileManager.default.fileExists(atPath: spool))
  }
}
