import Foundation
import TestSupport
import Testing

@testable import Remote

/// Commands that read a session give the same from a store as from a directory.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct StoredSessionCommandTests: RemoteSuite {
  let servers: RemoteServers
  private let id: String
  private let directory: String

  init() throws {
    servers = try RemoteServers()
    let session = try GeneratedSession(seed: 7, in: servers.scratch)
    id = session.name
    directory = servers.scratch.path("output/" + session.name)
    try encode(session)
  }

  /// Runs a command on the session in the store.
  private func read(_ words: [String]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words + ["--store", location], environment: environment)
  }

  /// Expects that nothing of a copy is left below TMPDIR.
  private func expectNoScratch() throws {
    let names = FileManager.default.enumerator(atPath: scratch.path("encoder-worker-\(geteuid())"))?.allObjects ?? []
    #expect(names.filter { "\($0)".contains("segment-") || "\($0)".contains(id) }.isEmpty, "\(names)")
  }

  @Test(arguments: [
    ["stitch", "film.mp4"], ["stitch", "film.mp4", "--from", "+3s", "--to-time", "+9.5s"],
    ["stitch", "film.mp4", "--idle", "cut", "--gaps", "cut"], ["stitch", "film.mp4", "--speed", "40"],
    ["stitch", "film.gif", "--max-side", "200"], ["stitch", "film.png", "--from", "+4s"],
    ["stitch", "list", "--format", "hls"],
    ["pictures", "all"], ["pictures", "some.zip", "--from", "+2s", "--duration", "5s"],
    ["pictures", "lines.jsonl", "--changed-only", "--max", "4", "--max-side", "300"],
    ["pictures", "at.png", "--at", "+3s"], ["pictures", "sheet.jpg", "--sheet"],
  ])
  func resultsEqualThoseOfADirectory(words: [String]) throws {
    let (target, other) = (scratch.path("from-directory-" + words[1]), scratch.path("from-store-" + words[1]))
    let options = words.dropFirst(2) + ["--json"]
    let wanted = try Tool.run(EncoderWorker.path, [words[0], directory, "--to", target] + options)
    let stored = try read([words[0], id, "--to", other] + options)
    #expect(wanted.status == 0 && stored.status == 0, "\(wanted.errors) \(stored.errors)")
    #expect(stored.text.replacing("from-store-", with: "from-directory-") == wanted.text)
    #expect(stored.errors.replacing(id, with: "x") == wanted.errors.replacing(directory, with: "x"))
    #expect(try contents(other) == contents(target) && !contents(target).isEmpty)
    try expectNoScratch()
  }

  /// But for the moment of its making, the report on a stored session is that of a directory with its names.
  @Test func reportEqualsThatOfADirectory() throws {
    func report(_ name: String) throws -> String {
      let tar = try #require(try names(in: scratch.path(name)).first)
      let json = String(
        decoding: try Tool.output("tar", ["xOf", scratch.path(name + "/" + tar), "report.json"]), as: UTF8.self)
      #expect(!json.contains(id))
      return json.split(separator: "\n").filter { !$0.contains("\"madeMs\"") }.joined(separator: "\n")
    }
    let wanted = try EncoderWorker.run("verify", directory, "--report", scratch.path("wanted"))
    let stored = try read(["verify", id, "--report", scratch.path("stored-report"), "--pixels"])
    #expect(wanted.status == 0 && stored.status == 0, "\(wanted.errors) \(stored.errors)")
    let (one, other) = (try report("wanted"), try report("stored-report"))
    #expect(
      one.contains("\"manifests\"")
        && one.components(separatedBy: "\"settings\"")[0] == other.components(separatedBy: "\"settings\"")[0])
    #expect(one.contains("\"startMs\"") && !stored.text.contains("2 files"))
    try expectNoScratch()
  }

  @Test func reencodedSessionEqualsThatOfADirectory() throws {
    let options = ["--quality", "small", "--max-side", "200", "--json", "--output"]
    let wanted = try Tool.run(EncoderWorker.path, ["reencode", directory] + options + [scratch.path("smaller")])
    let stored = try read(["reencode", id] + options + [scratch.path("stored")])
    #expect(wanted.status == 0 && stored.status == 0 && stored.text == wanted.text, "\(stored.errors)")
    let (made, other) = (try contents(scratch.path("smaller/" + id)), try contents(scratch.path("stored/" + id)))
    #expect(made == other && made.count > 4)
    // A second run continues, and reads no video whose segment is made.
    let video = try #require(try keys("output/\(id)/").last { $0.hasSuffix(".mp4") })
    for name in [video, video.replacing(".mp4", with: ".json"), "session.json", "session.ffconcat"] {
      try FileManager.default.removeItem(atPath: scratch.path("stored/\(id)/\(name)"))
    }
    for name in try keys("output/\(id)/") where name.hasSuffix(".mp4") && name != video {
      try client.delete("output/\(id)/" + name, nil)
    }
    let again = try read(["reencode", id] + options + [scratch.path("stored")])
    #expect(again.status == 0 && again.text.contains(#""encoded":1,"#), "\(again.errors)")
    #expect(try contents(scratch.path("stored/" + id)) == made)
    try expectNoScratch()
  }

  @Test func verificationSaysTheSameOfBoth() throws {
    func reports(_ arguments: [String]) throws -> [Tool.Result] {
      [
        try Tool.run(EncoderWorker.path, ["verify", directory] + arguments),
        try read(["verify", id] + arguments), try read(["verify"] + arguments),
      ]
    }
    for arguments in [[], ["--json"]] {
      let all = try reports(arguments)
      #expect(all.map(\.status) == [0, 0, 0] && Set(all.map(\.text)).count == 1, "\(all.map(\.text))")
    }
    // The same damage: a flipped byte, a missing manifest, another view.
    let names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    let videos = names.filter { $0.hasSuffix(".mp4") }
    func change(_ name: String, _ body: (inout Data) -> Void) throws {
      var data = try #require(FileManager.default.contents(atPath: directory + "/" + name))
      body(&data)
      try data.write(to: URL(fileURLWithPath: directory + "/" + name))
      _ = try client.put("output/\(id)/\(name)", .bytes(Array(data)), .video, when: .always)
    }
    try change(videos[0]) { $0[$0.count - 9] ^= 1 }
    try change(videos[1]) { $0 += Data("more".utf8) }
    try change("session.ffconcat") { $0 += Data("# x\n".utf8) }
    try FileManager.default.removeItem(atPath: directory + "/" + videos[2].replacing(".mp4", with: ".json"))
    try client.delete("output/\(id)/" + videos[2].replacing(".mp4", with: ".json"), nil)
    let all = try reports(["--json"])
    #expect(all.map(\.status) == [65, 65, 65])
    func lines(_ result: Tool.Result) -> String {
      result.text.replacing(/; (--repair rebuilds|a worker rebuilds)[^"]*/, with: "")
    }
    #expect(Set(all.map(lines)).count == 1, "\(all.map(lines))")
    #expect(all[1].text.contains("; a worker rebuilds it") && all[1].text.contains("other bytes"))
    try expectNoScratch()
  }

  @Test func damagedObjectIsNamedAndNothingIsLeft() throws {
    let video = try #require(try keys("output/\(id)/").first { $0.hasSuffix(".mp4") })
    _ = try client.put("output/\(id)/" + video, .bytes(Array("<html>no</html>".utf8)), .video, when: .always)
    for words in [
      ["stitch", id, "--to", scratch.path("x.mp4")], ["pictures", id, "--to", scratch.path("x")],
      ["reencode", id, "--quality", "small", "--output", scratch.path("y")],
    ] {
      let result = try read(words)
      #expect(result.status == 65 && result.errors.contains("\(location)/output/\(id)/\(video): "), "\(result.errors)")
      #expect(!FileManager.default.fileExists(atPath: scratch.path("x.mp4")))
      try expectNoScratch()
    }
    // A sheet shows what there is, as of a directory.
    let sheet = try read(["pictures", id, "--sheet", "--to", scratch.path("x.png")])
    #expect(sheet.status == 65 && sheet.errors.contains(video))
    #expect(try !contents(scratch.path("x.png")).isEmpty)
  }

  @Test func unknownSessionIsNamedWithItsStore() throws {
    for words in [
      ["stitch", "other", "--to", "x.mp4"], ["pictures", "other", "--to", "x"], ["verify", "other"],
      ["reencode", "other", "--quality", "small", "--output", scratch.path("y")],
    ] {
      let result = try read(words)
      let text = result.text + result.errors
      #expect(result.status == 65 && text.contains("\(location)/output/other"), "\(words): \(text)")
      #expect(text.contains("no such session") && !text.contains(id))
    }
  }

  @Test func storeOfTheEnvironmentCountsForAnIDThatIsNoPath() throws {
    let environment = environment.merging(["ENCODER_WORKER_STORE": location]) { $1 }
    let stored = try Tool.run(
      EncoderWorker.path, ["stitch", id, "--to", scratch.path("a.mp4")], environment: environment)
    #expect(stored.status == 0, "\(stored.errors)")
    let own = try Tool.run(
      EncoderWorker.path, ["stitch", directory, "--to", scratch.path("b.mp4")], environment: environment)
    #expect(own.status == 0, "\(own.errors)")
    #expect(try contents(scratch.path("a.mp4")) == contents(scratch.path("b.mp4")))
  }
}
