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
    let masks: [PublishedSession.Manifest.Mask]?
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
        #expect(found.map(\.masks) == wanted.map(\.masks))
        #expect(found.contains { $0.masks != nil } == (fixture == "masks"))
      }
    }
  }

  /// Publishes batches of numbered pictures, one a second, in one session.
  private func encode(_ batches: [[Int]], as session: String) throws -> String {
    var second: Int64 = 0
    for (index, numbers) in batches.enumerated() {
      let folder = try NumberedFolder("\(session)-\(index)", in: scratch)
      for (offset, number) in numbers.enumerated() {
        try folder.add("\(NumberedFolder.startMs + 1_000 * (second + Int64(offset))).png", number)
      }
      second += Int64(numbers.count)
      let result = try EncoderWorker.run(
        "encode", folder.path, "--output", scratch.path("output"), "--session", session)
      try #require(result.status == 0, "\(result.errors)")
    }
    return scratch.path("output/" + session)
  }

  private func seconds(_ lines: [Line]) -> [Int64] { lines.map { ($0.unixMs - NumberedFolder.startMs) / 1_000 } }

  /// Manifests do not tell the changes of pictures that open batches: the server decodes them as the command does.
  @Test func listOfManyBatchesIsThatOfTheCommand() throws {
    let path = try encode(
      [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 2, 2, 2], [2, 2, 2, 2, 2], [2, 2, 3, 3, 3], [3, 3, 3], [4]], as: "many")
    _ = try encode(Array(repeating: [7, 7, 7], count: 6), as: "idle")
    let server = try RunningServer(["serve", scratch.path("output")])
    #expect(try seconds(list("idle", "changed-only", of: server)) == [0])
    #expect(try seconds(list("idle", "max=3", of: server)) == [0])
    // The largest change is that of a picture that opens a batch.
    #expect(try seconds(list("many", "max=2", of: server)) == [0, 28])
    #expect(try seconds(list("many", "max=3", of: server)) == [0, 12, 28])
    #expect(try seconds(list("many", "min-change=20", of: server)) == [0, 12, 22, 28])
    #expect(try Set(seconds(list("many", "changed-only", of: server))).isDisjoint(with: [5, 10, 20]))
    for (query, options) in [
      ("", []), ("changed-only", ["--changed-only"]), ("max=2", ["--max", "2"]), ("max=3", ["--max", "3"]),
      ("min-change=20", ["--min-change", "20"]), ("max-tokens=12", ["--max-tokens", "12"]),
      ("changed-only&from=%2B7s", ["--changed-only", "--from", "+7s"]),
    ] {
      let file = scratch.path("pictures.jsonl")
      let run = try Tool.run(EncoderWorker.path, ["pictures", path, "--to", file] + options)
      #expect(run.status == 0, "\(run.errors)")
      let wanted = try lines(Data(contentsOf: URL(fileURLWithPath: file)))
      let found = try list("many", query, of: server)
      #expect(found.map(\.unixMs) == wanted.map(\.unixMs), "\(query)")
      #expect(found.map(\.holdMs) == wanted.map(\.holdMs), "\(query)")
      if !query.isEmpty { #expect(found.map(\.changedShare) == wanted.map(\.changedShare), "\(query)") }
    }
    // A choice needs the videos where the manifests do not tell the changes.
    for name in try names(in: path) where name.hasSuffix(".mp4") {
      try FileManager.default.removeItem(atPath: path + "/" + name)
    }
    #expect(try list("many", "", of: server).count == 29)
    #expect(try server.get("/sessions/many/pictures.jsonl?changed-only").status == 422)
  }

  /// A list has 1 000 pictures at most, and at most 1 000 pictures are decoded for it.
  @Test func longListIsCutAndSaysSo() throws {
    _ = try LongSession.make(of: 1_002, in: scratch, output: "long")
    let server = try RunningServer(["serve", scratch.path("long")])
    let path = "/sessions/exact-1fps/pictures.jsonl?"
    for query in ["changed-only", "max=20", "min-change=5", ""] {
      let reply = try server.get(path + query)
      #expect(reply.status == 400 && reply.text.contains("choose a shorter part with from and to"), "\(reply.text)")
    }
    let cut = try server.get(path + "to=%2B1005s")
    #expect(cut.status == 200 && cut.headers["x-pictures-left-out"] == "5", "\(cut.status)")
    #expect(try lines(cut.body).count == 1_000)
    // The client's own limit leaves nothing out that it does not know of.
    for query in ["to=%2B1000s", "to=%2B1005s&max=20"] {
      let reply = try server.get(path + query)
      #expect(reply.status == 200 && reply.headers["x-pictures-left-out"] == nil, "\(query): \(reply.status)")
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
