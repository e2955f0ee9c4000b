import Foundation
import TestSupport
import Testing

@testable import Remote

/// `encode`, `run` with all views, and `text` write the same into a store as into a directory.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct StoredWriterTests: RemoteSuite {
  private static let start = 1_767_859_512_340
  private static let lines = [
    ["violet", "order"], ["violet", "order", "secret"], ["violet", "order", "secret"], ["violet", "", "secret"],
    ["violet", "number", "secret"], ["violet", "number"], ["violet", "number"],
  ]

  let servers: RemoteServers
  /// The batches of one session.
  private let batches: [String]

  init() throws {
    servers = try RemoteServers()
    let scratch = servers.scratch
    batches = try [0..<5, 5..<7].map { part in
      let name = "batch-\(part.lowerBound)"
      let path = try scratch.directory(name)
      let frames = try part.map { number in
        var picture = DrawnText(width: 640, height: 480)
        for (index, line) in Self.lines[number].enumerated() { picture.write(line, x: 40, y: 40 + 80 * index) }
        try scratch.file("\(name)/\(number).png", picture.png)
        return #"{"file":"\#(number).png","timeMs":\#(Self.start + 1_000 * number)}"#
      }
      let json = #"{"version":1,"session":"s","frames":[\#(frames.joined(separator: ","))]}"#
      try scratch.file(name + "/batch.json", Array(json.utf8))
      return path
    }
  }

  private func program(_ words: [String]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words, environment: environment)
  }

  /// Returns the session's files in a directory, by their paths.
  private func files(_ output: String) throws -> [String: [UInt8]] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: output + "/s")
    return names.reduce(into: [:]) { files, name in
      if name.split(separator: "/").contains(where: { $0.hasPrefix(".") }) { return }
      files[name] = FileManager.default.contents(atPath: "\(output)/s/\(name)").map { Array($0) }
    }
  }

  /// Returns the session's objects in the store, by their names.
  private func objects() throws -> [String: [UInt8]] {
    try keys("output/s/").reduce(into: [:]) { $0[$1] = try client.get("output/s/" + $1, limit: 1 << 24)?.bytes }
  }

  private func expectSame(_ output: String) throws {
    let (files, objects) = (try files(output), try objects())
    #expect(objects.keys.sorted() == files.keys.sorted())
    for (name, bytes) in files { #expect(objects[name] == bytes, "\(name)") }
  }

  @Test func encodeWritesTheSameIntoAStore() throws {
    let output = scratch.path("output")
    let options = ["--sentry", "--final", "--jobs", "1"]
    let wanted = try program(["encode"] + batches + ["--output", output] + options)
    let stored = try program(["encode"] + batches + ["--store", location] + options)
    #expect(wanted.status == 0 && stored.status == 0, "\(wanted.errors) \(stored.errors)")
    #expect(stored.text.replacing("\(location)/output", with: output) == wanted.text)
    // The head of a stored session has its end.
    let (files, objects) = (try files(output).filter { $0.key != "session-end.json" }, try objects())
    #expect(objects.keys.sorted() == files.keys.sorted())
    for (name, bytes) in files { #expect(objects[name] == bytes, "\(name)") }
    #expect(objects.keys.contains { $0.hasSuffix(".sentry.json") })
    // A second run changes nothing, and nothing is left of the check of the store's conditions.
    let again = try program(["encode"] + batches + ["--store", location] + options)
    #expect(again.status == 0 && again.text.contains("published before"), "\(again.errors)")
    #expect(try self.objects() == objects && keys("incoming/").isEmpty)
    // The store has the session for readers.
    #expect(try program(["verify", "s", "--store", location]).status == 0)
    // Other content for the same time is refused, as in a directory.
    let other = try scratch.directory("other")
    try scratch.file("other/\(Self.start).jpg", Fixture("exact-1fps").bytes("0000.jpg"))
    let refused = try program(["encode", other, "--session", "s", "--store", location])
    #expect(try refused.status == 65 && self.objects() == objects, "\(refused.errors)")
  }

  @Test func encodeAsksForAppendWithTheWordsOfAStore() throws {
    #expect(try program(["encode", batches[0], "--store", location]).status == 0)
    let far = try scratch.directory("far")
    try scratch.file("far/\(Self.start + 40_000_000).jpg", Fixture("exact-1fps").bytes("0000.jpg"))
    let refused = try program(["encode", far, "--session", "s", "--store", location])
    #expect(refused.status == 65 && refused.errors.contains("delete s --store \(location)"), "\(refused.errors)")
    #expect(try program(["encode", far, "--session", "s", "--store", location, "--append"]).status == 0)
    // A deleted session stays deleted.
    #expect(try program(["delete", "s", "--store", location]).status == 0)
    let deleted = try program(["encode", batches[0], "--store", location])
    #expect(try deleted.status == 65 && objects().isEmpty, "\(deleted.text) \(deleted.errors)")
  }

  @Test func encodeTakesOnePlace() throws {
    let both = try program(["encode", batches[0], "--store", location, "--output", scratch.path("output")])
    #expect(both.status == 64 && both.errors.contains("--output does not work with --store"), "\(both.errors)")
    // A directory of the call counts more than a store of the environment.
    let output = scratch.path("output")
    let one = try Tool.run(
      EncoderWorker.path, ["encode", batches[0], "--output", output],
      environment: environment.merging(["ENCODER_WORKER_STORE": location]) { $1 })
    #expect(try one.status == 0 && files(output).count > 2 && objects().isEmpty, "\(one.errors)")
    let stored = try Tool.run(
      EncoderWorker.path, ["encode", batches[0]],
      environment: environment.merging(["ENCODER_WORKER_STORE": location]) { $1 })
    #expect(try stored.status == 0 && !objects().isEmpty, "\(stored.errors)")
  }

  @Test(.enabled(if: Tool.readsText, "tesseract is not installed: scripts/setup test"))
  func workerWithAllViewsWritesTheSameIntoAStore() throws {
    let options = ["--drain", "--thumbnails", "--sentry", "--hls", "--text"]
    let spool = scratch.path("spool")
    _ = try scratch.directory("spool/incoming")
    for (number, batch) in batches.enumerated() {
      let archive = "\(spool)/incoming/s@\(number).tar"
      try Tool.output("tar", ["-C", batch, "-cf", archive, "."])
      _ = try client.put("incoming/s@\(number).tar", .file(archive), .archive, when: .absent)
      try #require(try run(["reconcile"]).status == 0)
      // Drains of one batch each: the views grow.
      let drained = try program(["run", "--spool", spool] + options)
      let there = try run(["run"] + options)
      #expect(drained.status == 0 && there.status == 0, "\(drained.errors) \(there.errors)")
      #expect(!there.errors.contains("text."), "\(there.errors)")
    }
    try expectSame(spool + "/output")
    let names = try objects().keys
    #expect(names.contains("thumbnails/thumbnails.vtt") && names.contains("hls/session.m3u8"))
    #expect(names.count { $0.hasSuffix(".text.json") } == 2 && names.count { $0.hasSuffix(".sentry.json") } == 2)
    #expect(try program(["verify", "s", "--store", location]).status == 0)
  }

  @Test(.enabled(if: Tool.readsText, "tesseract is not installed: scripts/setup test"))
  func textReadsAStoredSession() throws {
    let output = scratch.path("output")
    for place in [["--output", output], ["--store", location]] {
      #expect(try program(["encode"] + batches + place).status == 0)
    }
    let text = "output/s/segment-\(Self.start).text.json"
    func both(_ options: String...) throws {
      let wanted = try program(["text", output + "/s", "--json"] + options)
      let stored = try program(["text", "s", "--store", location, "--json"] + options)
      #expect(wanted.status == 0 && stored.status == 0, "\(wanted.errors) \(stored.errors)")
      #expect(stored.text == wanted.text)
      try expectSame(output)
    }
    try both()
    #expect(try client.head(text) != nil)
    try both()
    try both("--again")
    // Words that are damaged are read again.
    _ = try client.put(text, .bytes(Array("{}".utf8)), .json, when: .always)
    try Data("{}".utf8).write(to: URL(fileURLWithPath: "\(output)/s/segment-\(Self.start).text.json"))
    try both()
    let unknown = try program(["text", "none", "--store", location])
    #expect(unknown.status == 65 && unknown.errors.contains("\(location)/output/none"), "\(unknown.errors)")
  }
}
