import Foundation
import TestSupport
import Testing

/// `serve`: GIF and WebP beside the MP4 of a session, with the same limits. `FilmRequestTests` has those.
@Suite struct AnimationRequestTests {
  private let scratch: ScratchDirectory
  private let session: PublishedSession
  private let server: RunningServer

  init() throws {
    scratch = try ScratchDirectory()
    session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    server = try RunningServer(["serve", scratch.path("output")])
  }

  private func get(_ name: String, _ headers: [String: String] = [:]) throws -> RunningServer.Reply {
    try server.get("/sessions/exact-1fps/\(name)", headers)
  }

  @Test(arguments: ["gif", "webp"]) func answerEqualsStitch(ending: String) throws {
    let film = scratch.path("film.\(ending)")
    for (query, options, part) in [
      ("", [], ""),
      (
        "?from=+2.5s&to=+7s&speed=2&max-side=64",
        ["--from", "+2.5s", "--to-time", "+7s", "--speed", "2", "--max-side", "64"],
        "-\(session.index.startMs + 2_500)-\(session.index.startMs + 7_000)-2"
      ),
    ] {
      let stitched = try Tool.run(EncoderWorker.path, ["stitch", session.path, "--to", film] + options)
      #expect(stitched.status == 0, "\(stitched.errors)")
      let reply = try get("session.\(ending)\(query)")
      #expect(reply.status == 200 && reply.headers["content-type"] == "image/\(ending)")
      #expect(reply.body == FileManager.default.contents(atPath: film))
      #expect(
        reply.headers["content-disposition"] == "attachment; filename=\"exact-1fps\(part).\(ending)\"")
      let tag = try #require(reply.headers["etag"])
      #expect(try get("session.\(ending)\(query)", ["If-None-Match": tag]).status == 304)
      #expect(try get("session.mp4\(query)", ["If-None-Match": tag]).status == 200)
      #expect(try get("session.\(ending)?max-side=100", ["If-None-Match": tag]).status == 200)
    }
    #expect(try get("session.\(ending)", ["Range": "bytes=0-2"]).text == (ending == "gif" ? "GIF" : "RIF"))
  }

  @Test func requestsThatMakeNoPictureAreRefused() throws {
    for (status, query) in [
      (400, "max-side=15"), (400, "max-side=2049"), (400, "max-side=x"), (400, "from=+3s&to=+3s"), (400, "speed=100"),
      (404, "from=\(session.index.endMs)"),
    ] {
      for ending in ["gif", "webp"] {
        let reply = try get("session.\(ending)?\(query)")
        #expect(reply.status == status && reply.text.contains("\"error\""), "\(query): \(reply.status) \(reply.text)")
      }
    }
    let fast = try get("session.gif?speed=100")
    let advised = try #require(fast.text.firstMatch(of: #/a speed of ([\d.]+) or less/#)?.1)
    #expect(try get("session.gif?speed=\(advised)").status == 200)
    try FileManager.default.removeItem(atPath: session.video(session.manifests[1]))
    #expect(try get("session.gif?max-side=50").status == 422)
  }

  @Test func longSessionIsRefusedAtOnce() throws {
    _ = try LongSession.make(of: 4_001, in: scratch, output: "long")
    let server = try RunningServer(["serve", scratch.path("long")])
    let reply = try server.get("/sessions/exact-1fps/session.gif")
    #expect(reply.status == 400 && reply.text.contains("20005 pictures"), "\(reply.text)")
    #expect(try server.get("/sessions/exact-1fps/session.webp?from=+10s&to=+15s").status == 200)
    #expect(try server.unnamedFiles().count == 1)
  }

  /// 500 pictures of 2048×2048.
  @Test func tooManyPixelsAreRefusedAtOnce() throws {
    let folder = try scratch.directory("large")
    for second in 0..<5 {
      let file = "\(folder)/\(LongSession.startMs + 1_000 * Int64(second)).png"
      try Tool.output(
        "ffmpeg", ["-v", "error", "-f", "lavfi", "-i", "color=gray:size=2048x2048", "-frames:v", "1", file])
    }
    _ = try LongSession.make(of: 100, in: scratch, output: "long", from: Fixture(file: folder))
    let server = try RunningServer(["serve", scratch.path("long")])
    for ending in ["gif", "webp"] {
      let reply = try server.get("/sessions/large/session.\(ending)?max-side=2048")
      #expect(reply.status == 400 && reply.text.contains("2097152000 pixels"), "\(reply.status) \(reply.text)")
      #expect(reply.text.contains("a lower max-side"), "\(reply.text)")
    }
    #expect(try server.unnamedFiles().isEmpty)
    #expect(try server.get("/sessions/large/session.gif?max-side=2048&to=+3s").status == 200)
  }

  /// One is made at a time and eight wait, whatever the format.
  @Test func requestsBeyondTheQueueAreToldToTryAgain() throws {
    _ = try LongSession.make(of: 100, in: scratch, output: "long")
    let server = try RunningServer(["serve", scratch.path("long")])
    #expect(try server.get("/sessions/exact-1fps/timeline.json").status == 200)
    let clients = try (0..<30).map { _ in try server.connection() }
    for (number, file) in clients.enumerated() {
      let name = ["session.gif", "session.webp"][number % 2] + "?speed=1.0\(10 + number)"
      let text = "GET /sessions/exact-1fps/\(name) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
      #expect(send(file, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
    }
    let heads = try RunningServer.answers(on: clients).map {
      String(decoding: $0.prefix(1_000), as: UTF8.self).components(separatedBy: "\r\n\r\n")[0]
    }
    let refused = heads.filter { $0.hasPrefix("HTTP/1.1 503 ") }
    #expect(!refused.isEmpty && heads.allSatisfy { $0.hasPrefix("HTTP/1.1 200 ") || $0.hasPrefix("HTTP/1.1 503 ") })
    #expect(refused.allSatisfy { $0.contains("\r\nRetry-After: 10\r\n") })
    #expect(try server.unnamedFiles().count <= 8)
  }

  @Test func pictureOfAClientThatHasLeftIsNotMade() async throws {
    _ = try LongSession.make(of: 1_200, in: scratch, output: "long")
    let log = scratch.path("log")
    let server = try RunningServer(["serve", scratch.path("long"), "--sandbox", "off"], openedTo: log)
    #expect(try server.get("/sessions/exact-1fps/timeline.json").status == 200)
    let file = try server.connection()
    let text = "GET /sessions/exact-1fps/session.gif HTTP/1.1\r\nHost: localhost\r\n\r\n"
    #expect(send(file, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
    close(file)
    try await eventually("the abandoned request has ended") {
      try server.get("/metrics").text.contains("requests_total{status=\"499\"} 1\n")
    }
    let opened = try String(contentsOfFile: log, encoding: .utf8).components(separatedBy: "\n")
    #expect(opened.count { $0.contains(".mp4\"") } < 1_200)
  }
}
