import Foundation
import JSON
import TestSupport
import Testing

/// The sessions that `serve` lists, and their timelines, films and fragments; also those of growing, damaged and forged
/// sessions.
@Suite struct ServeTests: ServingSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private struct List: Decodable {
    struct Session: Decodable {
      let session: String
      let startMs: Int64?
      let frames: Int?
      let gaps: Int?
      let error: String?
    }
    let sessions: [Session]
  }

  private struct Timeline: Decodable {
    struct Segment: Decodable {
      struct Frame: Decodable {
        let timeMs: Int64
        let holdMs: Int64
        let source: String
        let status: String
      }
      struct Refused: Decodable { let source: String }
      let file, fragment, initialization: String
      let startMs, lengthMs: Int64
      let frames: [Frame]
      let refused: [Refused]
    }
    struct Problem: Decodable { let file: String }
    let startMs, endMs: Int64
    let frames: Int
    let segments: [Segment]
    let problems: [Problem]
  }

  private func timeline(_ session: String, of server: RunningServer) throws -> Timeline {
    try JSONDecoder().decode(Timeline.self, from: server.get("/sessions/\(session)/timeline.json").body)
  }

  @Test func allSessionsAreListedAndUnreadableOnesAreMarked() throws {
    let (server, _) = try serve("exact-1fps", "gap")
    _ = try scratch.directory("output/damaged")
    try scratch.file("output/damaged/session.json", Array("{".utf8))
    try FileManager.default.createSymbolicLink(
      atPath: scratch.path("output/linked"), withDestinationPath: scratch.path("output/gap"))
    let list = try JSONDecoder().decode(List.self, from: server.get("/sessions.json").body)
    #expect(Set(list.sessions.map(\.session)) == ["exact-1fps", "gap", "damaged"])
    #expect(list.sessions.first { $0.session == "gap" }?.gaps == 2)
    #expect(list.sessions.first { $0.session == "damaged" }?.error?.contains("verify --repair") == true)
    #expect(try server.get("/sessions/linked/timeline.json").status == 404)
    #expect(server.stop() == 0)
  }

  @Test func pagesAndChangesOfTheListAreAnswered() throws {
    let (server, _) = try serve("exact-1fps", "gap", "rotation")
    func list(_ arguments: String) throws -> [String: JSONValue] {
      let reply = try server.get("/sessions.json?" + arguments)
      #expect(reply.status == 200, "\(arguments): \(reply.text)")
      return try #require(JSONParser.parse(Array(reply.body)).object)
    }
    func names(_ list: [String: JSONValue]) -> [String] {
      list["sessions"]?.array?.compactMap { $0.object?["session"]?.string } ?? []
    }
    let all = names(try list(""))
    let first = try list("limit=2")
    #expect(first["total"]?.integer == 3 && names(first) == Array(all.prefix(2)))
    let next = try #require(first["next"]?.string)
    let last = try list("limit=2&after=" + next)
    #expect(names(last) == Array(all.suffix(1)) && last["next"] == nil)
    let page = try server.get("/sessions.json?limit=2")
    let tag = try #require(page.headers["etag"])
    #expect(try server.get("/sessions.json?limit=2", ["If-None-Match": tag]).status == 304)
    #expect(try server.get("/sessions.json?limit=1", ["If-None-Match": tag]).status == 200)
    let later = "/sessions.json?limit=2&after=" + next
    let laterTag = try #require(try server.get(later).headers["etag"])
    #expect(laterTag != tag)
    #expect(try server.get(later, ["If-None-Match": "\"x\", \(laterTag)"]).status == 304)
    try FileManager.default.removeItem(atPath: scratch.path("output/gap"))
    let revision = try #require(first["revision"]?.string)
    let changes = try list("since=" + revision)
    #expect(changes["removed"]?.array == [.string("gap")] && names(changes).isEmpty && changes["since"] != nil)
    #expect(try server.get("/sessions.json?limit=2", ["If-None-Match": tag]).status == 200)
    // A client of a server that was started again gets the first page.
    let reset = try list("since=other-1&limit=1")
    #expect(reset["since"] == nil && names(reset).count == 1 && reset["total"]?.integer == 2)
    for arguments in [
      "limit=0", "limit=1001", "limit=x", "after=x", "after=1,%22", "limit=1&after=1,../gap",
      "since=\(revision)&after=\(next)",
    ] {
      #expect(try server.get("/sessions.json?" + arguments).status == 400, "\(arguments)")
    }
    #expect(server.stop() == 0)
  }

  private static func withoutChapters(_ playlist: Data) -> Data {
    let lines = String(decoding: playlist, as: UTF8.self).components(separatedBy: "\n")
    return Data(lines.filter { !$0.hasPrefix("#EXT-X-DATERANGE:") }.joined(separator: "\n").utf8)
  }

  private static func chapters(_ playlist: Data) -> [String] {
    String(decoding: playlist, as: UTF8.self).components(separatedBy: "\n").filter {
      $0.hasPrefix("#EXT-X-DATERANGE:")
    }
  }

  @Test func timelineMatchesManifestsAndFragmentsMatchStitch() throws {
    for fixture in ["gap", "rotation", "corrupt-frames", "jittered"] {
      // Else its playlist would go on.
      let session = try EncoderWorker.encode(Fixture(fixture), into: scratch, "--final")
      let server = try RunningServer(["serve", scratch.path("output")])
      let timeline = try timeline(fixture, of: server)
      #expect(timeline.startMs == session.index.startMs && timeline.frames == session.index.frames)
      #expect(timeline.segments.flatMap(\.frames).map(\.timeMs) == session.manifests.flatMap(\.frames).map(\.timeMs))
      #expect(timeline.segments.flatMap(\.refused).count == (fixture == "corrupt-frames" ? 3 : 0))
      #expect(timeline.problems.isEmpty)
      let hls = scratch.path("hls-" + fixture)
      #expect(try EncoderWorker.run("stitch", session.path, "--to", hls, "--format", "hls").status == 0)
      for name in try names(in: hls) {
        let reply = try server.get("/sessions/\(fixture)/\(name)")
        #expect(reply.status == 200, "\(name)")
        let file = try Data(contentsOf: URL(fileURLWithPath: hls + "/" + name))
        // Chapters are at the head of a finished playlist, and before the segments of one that may grow.
        let isPlaylist = name.hasSuffix(".m3u8")
        if isPlaylist {
          #expect(Self.withoutChapters(reply.body) == Self.withoutChapters(file), "\(fixture)/\(name)")
          #expect(Self.chapters(reply.body) == Self.chapters(file), "\(fixture)/\(name)")
        } else {
          #expect(reply.body == file, "\(fixture)/\(name)")
        }
      }
      let film = scratch.path("film.mp4")
      #expect(try EncoderWorker.run("stitch", session.path, "--to", film).status == 0)
      let reply = try server.get("/sessions/\(fixture)/session.mp4")
      #expect(reply.body == FileManager.default.contents(atPath: film))
      #expect(reply.headers["content-disposition"] == "attachment; filename=\"\(fixture).mp4\"")
    }
  }

  @Test func partOfAFilmEqualsStitch() throws {
    let (server, sessions) = try serve("exact-1fps")
    let (start, end) = (sessions[0].index.startMs, sessions[0].index.endMs)
    let (path, film) = ("/sessions/exact-1fps/session.mp4", scratch.path("film.mp4"))
    func get(_ query: String, _ headers: [String: String] = [:]) throws -> RunningServer.Reply {
      try server.get("\(path)?\(query)", headers)
    }
    #expect(
      try EncoderWorker.run(
        "stitch", sessions[0].path, "--to", film, "--from", "+2.5s", "--to-time", "+7s", "--speed", "2"
      ).status == 0)
    let reply = try get("from=\(start + 2_500)&to=\(start + 7_000)&speed=2")
    #expect(reply.body == FileManager.default.contents(atPath: film))
    let name = "exact-1fps-\(start + 2_500)-\(start + 7_000)-2.mp4"
    #expect(reply.headers["content-disposition"] == "attachment; filename=\"\(name)\"")
    // The same part by other words is the same version; other parts are not.
    let tag = try #require(reply.headers["etag"])
    #expect(try get("from=%2B2.5s&to=+7s&speed=2.0", ["If-None-Match": tag]).status == 304)
    for other in ["from=+2.5s&to=+7s", "from=+2.501s&to=+7s&speed=2", "to=+7s&speed=2", ""] {
      #expect(try get(other, ["If-None-Match": tag]).status == 200, "\(other)")
    }
    // Only the segments of the part are needed.
    try FileManager.default.removeItem(atPath: sessions[0].video(sessions[0].manifests[2]))
    #expect(try get("from=+1s&to=+4s").status == 200)
    #expect(try get("from=+1s&to=+12s").status == 422)
    for (status, query) in [
      (400, "from=+3s&to=+3s"), (400, "from=noon"), (400, "to=1e9"), (400, "speed=0"), (400, "speed=100001"),
      (404, "from=\(end)"), (404, "to=\(start)"), (404, "from=0&to=1"),
    ] {
      let refusal = try get(query)
      #expect(refusal.status == status, "\(query): \(refusal.text)")
      #expect(refusal.text.contains("\"error\""))
    }
    // More parts than the cache has room for.
    for ms in 0..<20 { #expect(try get("from=+0.\(100 + ms)s&to=+1s", ["Range": "bytes=4-7"]).text == "ftyp") }
  }

  @Test func growingSessionIsServedInItsCurrentState() throws {
    let spool = try TestSpool()
    try spool.addSmall("day@1", startMs: 1_767_859_512_340)
    try spool.drain()
    let server = try RunningServer(["serve", spool.output])
    let before = try timeline("day", of: server)
    try spool.addSmall("day@2", startMs: 1_767_859_514_340, frames: [2, 3])
    try spool.drain()
    let after = try timeline("day", of: server)
    #expect(before.frames == 2 && after.frames == 4)
    #expect(try server.get("/sessions/day/\(after.segments[1].fragment)").status == 200)
  }

  /// The playlist of a worker is served, and one of segments alone begins when the next batch tells how long the last picture is shown.
  @Test func playlistOfASessionThatGoesOnHasNoEnd() throws {
    let spool = try TestSpool()
    try spool.addSmall("kept@1", startMs: 1_767_859_512_340)
    try spool.addSmall("bare@1", startMs: 1_767_859_512_340)
    try spool.drain()
    // As if it had come an hour later, so that a slow machine has the time to look.
    try FileManager.default.setAttributes(
      [.modificationDate: Date().addingTimeInterval(3_600)],
      ofItemAtPath: spool.output + "/bare/segment-1767859512340.json")
    let server = try RunningServer(["serve", spool.output])
    for name in ["session.m3u8", "iframes.m3u8", "multivariant.m3u8"] {
      let early = try server.get("/sessions/bare/" + name)
      #expect(early.status == 503 && early.headers["retry-after"] == "2", "\(early.text)")
    }
    try spool.addSmall("kept@2", startMs: 1_767_859_514_440)
    try spool.drain("--hls")
    let files = spool.output + "/kept/hls"
    for name in try names(in: files) {
      let reply = try server.get("/sessions/kept/" + name)
      #expect(reply.status == 200 && reply.body == FileManager.default.contents(atPath: files + "/" + name), "\(name)")
    }
    let text = try server.get("/sessions/kept/session.m3u8").text
    #expect(text.contains("#EXT-X-PLAYLIST-TYPE:EVENT\n") && !text.contains("#EXT-X-ENDLIST"))
    #expect(try EncoderWorker.run("end", "kept", "--output", spool.output).status == 0)
    #expect(try server.get("/sessions/kept/session.m3u8").text == text + "#EXT-X-ENDLIST\n")
  }

  @Test func longAnswersArePacked() throws {
    let long = try TestSpool()
    for batch in 0..<4 {
      try long.addSmall("day@\(batch)", startMs: 1_767_859_512_340 + Int64(batch) * 12_000, frames: Array(0..<12))
    }
    try long.drain()
    let server = try RunningServer(["serve", long.output])
    let path = "/sessions/day/timeline.json"
    let (plain, packed) = (try server.get(path), try server.get(path, ["Accept-Encoding": "gzip, deflate"]))
    #expect(plain.body.count > 4_096 && plain.headers["content-encoding"] == nil)
    #expect(packed.headers["content-encoding"] == "gzip" && packed.body.count < plain.body.count / 2)
    let file = try scratch.file("timeline.gz", [UInt8](packed.body))
    #expect(try Tool.output("gzip", ["-dc", file]) == plain.body)
    let tag = try #require(packed.headers["etag"])
    #expect(try tag != plain.headers["etag"] && server.get(path, ["If-None-Match": tag]).status == 304)
  }

  @Test func missingSegmentIsReportedAndTheRestIsShown() throws {
    let (server, sessions) = try serve("exact-1fps")
    let all = try timeline("exact-1fps", of: server)
    let lost = sessions[0].manifests[1].file
    try FileManager.default.removeItem(atPath: sessions[0].path + "/" + lost)
    let timeline = try timeline("exact-1fps", of: server)
    #expect(timeline.problems.map(\.file) == [lost] && timeline.segments.count == all.segments.count)
    let reply = try server.get("/sessions/exact-1fps/\(timeline.segments[1].fragment)")
    #expect(reply.status == 422 && reply.text.contains(lost), "\(reply.text)")
    #expect(try server.get("/sessions/exact-1fps/\(timeline.segments[2].fragment)").status == 200)
    #expect(try server.get("/sessions/exact-1fps/session.m3u8").text.contains("#EXT-X-GAP"))
    #expect(try server.get("/sessions/exact-1fps/session.mp4").status == 422)
  }

  /// Browsers revalidate a cached fragment; the server then reports that the session is gone.
  @Test func aDeletedSessionIsNotShownFromABrowsersCache() throws {
    let (server, sessions) = try serve("exact-1fps")
    let timeline = try timeline("exact-1fps", of: server)
    let path = "/sessions/exact-1fps/" + timeline.segments[0].fragment
    let reply = try server.get(path)
    let tag = try #require(reply.headers["etag"])
    #expect(reply.status == 200 && reply.headers["cache-control"] == "private, no-cache")
    #expect(try server.get(path, ["If-None-Match": tag]).status == 304)
    try FileManager.default.removeItem(atPath: sessions[0].path)
    #expect(try server.get(path, ["If-None-Match": tag]).status == 404)
  }

  @Test func forgedSessionsDoNotAffectOtherSessions() throws {
    let (server, _) = try serve("exact-1fps")
    let forged = [
      "overflow": #"{"startMs":-9223372036854775808,"endMs":9223372036854775807,"frames":1,"bytes":1,"#,
      "large1": #"{"startMs":1,"endMs":2,"frames":1,"bytes":9223372036854775807,"#,
      "large2": #"{"startMs":1,"endMs":2,"frames":1,"bytes":9223372036854775807,"#,
      "backwards": #"{"startMs":2,"endMs":1,"frames":1,"bytes":1,"#,
      "negative": #"{"startMs":1,"endMs":2,"frames":-1,"bytes":1,"#, "nonsense": #"{"startMs":NaN,"#,
    ]
    for (name, text) in forged {
      _ = try scratch.directory("output/" + name)
      try scratch.file(
        "output/\(name)/session.json", Array((text + #""segments":[],"gaps":[],"complete":true}"#).utf8))
    }
    // A long manifest in another format than the worker writes.
    _ = try scratch.directory("output/long")
    try scratch.file(
      "output/long/session.json", Array("{\"gaps\":[\(String(repeating: "[],", count: 2_000_000))0]}".utf8))
    let list = try JSONDecoder().decode(List.self, from: server.get("/sessions.json").body)
    #expect(Set(list.sessions.filter { $0.error != nil }.map(\.session)) == Set(forged.keys).union(["long"]))
    #expect(try server.get("/metrics").status == 200 && server.get("/healthz").status == 200)
  }

  @Test func manifestWithVeryManyPartsIsReadWithoutDelay() throws {
    let (server, sessions) = try serve("exact-1fps")
    let path = sessions[0].path + "/segment-\(sessions[0].manifests[0].startMs).json"
    var manifest = try SegmentManifestJSON(path)
    manifest["parts"] = .number(1 << 20)
    manifest["refused"] = .array([.null, .object(["source": .number(3)])])
    try FileManager.default.removeItem(atPath: path)
    try manifest.write(to: path)
    let timeline = try timeline("exact-1fps", of: server)
    #expect(timeline.problems.count == 1 && timeline.segments[0].refused.map(\.source) == ["", ""])
  }

  @Test func videoOfAnotherSizeThanItsManifestSaysIsNotRead() throws {
    let (server, sessions) = try serve("exact-1fps")
    let timeline = try timeline("exact-1fps", of: server)
    let video = try FileHandle(forWritingTo: URL(fileURLWithPath: sessions[0].path + "/" + timeline.segments[0].file))
    try video.truncate(atOffset: 1 << 33)
    #expect(try server.get("/sessions/exact-1fps/" + timeline.segments[0].fragment).status == 422)
  }
}
