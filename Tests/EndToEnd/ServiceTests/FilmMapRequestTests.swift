import Foundation
import TestSupport
import Testing

/// `serve`: the map of a film, and films without idle time. `IdleFilmTests` has their pictures.
@Suite struct FilmMapRequestTests {
  private let scratch: ScratchDirectory
  private let session: PublishedSession
  private let server: RunningServer

  init() throws {
    scratch = try ScratchDirectory()
    session = try EncoderWorker.encode(Fixture("gap"), into: scratch)
    server = try RunningServer(["serve", scratch.path("output")])
  }

  private func get(_ name: String, _ headers: [String: String] = [:]) throws -> RunningServer.Reply {
    try server.get("/sessions/gap/\(name)", headers)
  }

  @Test(arguments: [
    ("", []), ("?idle=cut", ["--idle", "cut"]),
    (
      "?from=+1s&to=+9s&speed=2&idle=speed=3",
      ["--from", "+1s", "--to-time", "+9s", "--speed", "2", "--idle", "speed=3"]
    ),
  ])
  func mapsAndFilmsAreThoseOfStitch(query: String, options: [String]) throws {
    let (film, map) = (scratch.path("film.mp4"), scratch.path("film.json"))
    let stitched = try Tool.run(
      EncoderWorker.path, ["stitch", session.path, "--to", film, "--map", map] + options)
    try #require(stitched.status == 0, "\(stitched.errors)")
    let reply = try get("map.json\(query)")
    #expect(reply.status == 200 && reply.headers["content-type"]?.hasPrefix("application/json") == true)
    #expect(try JSONDecoder().decode(FilmMapJSON.self, from: reply.body) == FilmMapJSON(map))
    #expect(try get("session.mp4\(query)").body == FileManager.default.contents(atPath: film))
    let tag = try #require(reply.headers["etag"])
    #expect(try get("map.json\(query)", ["If-None-Match": tag]).status == 304)
    #expect(try get("map.json?speed=3", ["If-None-Match": tag]).status == 200)
  }

  /// A map reads all manifests of a session: the one that a client has asked for is kept until the session changes.
  @Test func mapIsKeptUntilTheSessionChanges() throws {
    let map = try get("map.json")
    let manifest = session.manifests[0].file.replacingOccurrences(of: ".mp4", with: ".json")
    let path = session.path + "/" + manifest
    let file = try #require(FileHandle(forWritingAtPath: path))
    // In place: the directory has no new name.
    try file.write(contentsOf: Data("x".utf8))
    try file.close()
    let again = try get("map.json")
    #expect(map.status == 200 && again.status == 200)
    #expect(again.body == map.body && again.headers["etag"] == map.headers["etag"])
    try FileManager.default.removeItem(atPath: path)
    let changed = try get("map.json")
    #expect(changed.headers["etag"] == nil || changed.headers["etag"] != map.headers["etag"])
    #expect(changed.body != map.body)
  }

  @Test func requestsThatMakeNoSenseAreRefused() throws {
    for (status, query) in [
      (400, "idle=drop"), (400, "idle=cut=1"), (400, "idle=cut&speed=101"), (400, "idle=speed=50&speed=3"),
      (400, "from=+3s&to=+3s"), (404, "from=\(session.index.endMs)"),
    ] {
      for name in ["map.json", "session.mp4"] {
        #expect(try get("\(name)?\(query)").status == status, "\(name)?\(query)")
      }
    }
  }
}
