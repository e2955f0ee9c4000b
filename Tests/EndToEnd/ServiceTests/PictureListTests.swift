import Foundation
import TestSupport
import Testing

/// `pictures.jsonl` of a session: the pictures that changed, with links.
@Suite struct PictureListTests: ServingSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private struct Line: Decodable, Equatable {
    let instant, source: String
    let unixMs, shownFromMs, holdMs: Int64
    let width, height, blocks, tokens: Int
    let changedBlocks: Int?
    let changedShare: Double?
    let notes: [String]
    let url: String?
  }

  private func lines(_ text: Data) throws -> [Line] {
    try text.split(separator: UInt8(ascii: "\n")).map { try JSONDecoder().decode(Line.self, from: Data($0)) }
  }

  private func list(_ session: String, _ query: String, of server: RunningServer) throws -> [Line] {
    let reply = try server.get("/sessions/\(session)/pictures.jsonl?\(query)")
    #expect(reply.status == 200 && reply.headers["content-type"] == "application/jsonl", "\(query): \(reply.text)")
    return try lines(reply.body)
  }

  @Test func listIsThatOfTheCommand() throws {
    for fixture in ["rotation", "masks", "gap", "corrupt-frames"] {
      let (server, sessions) = try serve(fixture)
      for (query, options) in [
        ("", []), ("changed-only", ["--changed-only"]), ("changed-only=true&max=3", ["--changed-only", "--max", "3"]),
        ("min-change=40&max-side=64", ["--min-change", "40", "--max-side", "64"]),
        ("from=%2B1s&to=+2.5s", ["--from", "+1s", "--to-time", "+2.5s"]),
      ] {
        let file = scratch.path("pictures.jsonl")
        let run = try Tool.run(EncoderWorker.path, ["pictures", sessions[0].path, "--to", file] + options)
        #expect(run.status == 0, "\(run.errors)")
        let wanted = try lines(Data(contentsOf: URL(fileURLWithPath: file)))
        let found = try list(fixture, query, of: server)
        // Without a decoder, the change of a picture of a new size is unknown in both.
        #expect(found.map(\.unixMs) == wanted.map(\.unixMs), "\(fixture) \(query)")
        #expect(found.map(\.holdMs) == wanted.map(\.holdMs) && found.map(\.notes) == wanted.map(\.notes))
        #expect(found.map(\.changedBlocks) == wanted.map(\.changedBlocks))
        #expect(found.map(\.tokens) == wanted.map(\.tokens))
      }
    }
  }

  @Test func linksLeadToThePictures() throws {
    let (server, _) = try serve("rotation")
    for (query, side) in [("changed-only=1", 320), ("max-side=64", 64)] {
      for line in try list("rotation", query, of: server) {
        let reply = try server.get("/sessions/rotation/" + (try #require(line.url)))
        #expect(reply.status == 200, "\(line)")
        let probe = try ImageProbe(scratch.file("picture.jpg", Array(reply.body)))
        #expect((probe.width, probe.height) == (line.width, line.height) && max(probe.width, probe.height) == side)
      }
    }
    // Another size is another version.
    let path = "/sessions/rotation/frame.jpg?t=+0s"
    let tag = try #require(try server.get(path + "&max-side=64").headers["etag"])
    #expect(try server.get(path + "&max-side=64", ["If-None-Match": tag]).status == 304)
    #expect(try server.get(path, ["If-None-Match": tag]).status == 200)
    #expect(try server.get(path + "&max-side=15").status == 400)
  }

  @Test func sameListIsNotSentAgain() throws {
    let (server, _) = try serve("exact-1fps")
    let path = "/sessions/exact-1fps/pictures.jsonl?"
    let tag = try #require(try server.get(path + "max=3").headers["etag"])
    #expect(try server.get(path + "max=3", ["If-None-Match": tag]).status == 304)
    for other in ["", "max=4", "max=3&changed-only=1", "max=3&from=+2s", "max=3&max-side=100"] {
      #expect(try server.get(path + other, ["If-None-Match": tag]).status == 200, "\(other)")
    }
  }

  @Test func senselessChoiceIsRefused() throws {
    let (server, _) = try serve("exact-1fps")
    for (status, query) in [
      (400, "changed-only=perhaps"), (400, "min-change=0"), (400, "min-change=nan"), (400, "max=0"), (400, "max=1001"),
      (400, "max-tokens=1"), (400, "max-side=8193"), (400, "from=noon"), (404, "from=0&to=1"),
    ] {
      let reply = try server.get("/sessions/exact-1fps/pictures.jsonl?\(query)")
      #expect(reply.status == status && reply.text.contains("\"error\""), "\(query): \(reply.status)")
    }
    #expect(try server.get("/sessions/nobody/pictures.jsonl").status == 404)
  }

  @Test func listOfADeletedSessionIsGone() throws {
    let (server, _) = try serve("exact-1fps")
    #expect(try list("exact-1fps", "changed-only", of: server).count == 12)
    #expect(try EncoderWorker.run("delete", "exact-1fps", "--output", scratch.path("output")).status == 0)
    #expect(try server.get("/sessions/exact-1fps/pictures.jsonl?changed-only").status == 410)
  }
}
