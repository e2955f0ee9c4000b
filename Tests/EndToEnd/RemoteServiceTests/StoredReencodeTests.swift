import Foundation
import TestSupport
import Testing

@testable import Remote

/// `reencode` publishes in a store what it makes in a directory.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct StoredReencodeTests: RemoteSuite {
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

  private func program(_ words: [String]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words, environment: environment)
  }

  private func stored(_ name: String) throws -> [String: [UInt8]] {
    try keys("output/\(name)/").reduce(into: [:]) {
      $0[$1] = try client.get("output/\(name)/" + $1, limit: 1 << 24)?.bytes
    }
  }

  @Test func storeHasWhatADirectoryHas() throws {
    let options = ["--quality", "small", "--session", "again", "--json"]
    let wanted = try program(["reencode", directory, "--output", scratch.path("smaller")] + options)
    let made = try program(["reencode", id, "--store", location] + options)
    #expect(wanted.status == 0 && made.status == 0 && made.text == wanted.text, "\(wanted.errors) \(made.errors)")
    let files = try FileManager.default.contentsOfDirectory(atPath: scratch.path("smaller/again"))
      .filter { !$0.hasPrefix(".") }
    let objects = try stored("again")
    #expect(objects.keys.sorted() == files.sorted())
    for name in files {
      #expect(
        FileManager.default.contents(atPath: scratch.path("smaller/again/" + name)).map(Array.init) == objects[name])
    }
    #expect(try program(["verify", "again", "--store", location]).status == 0)
    // A second run changes nothing.
    #expect(try program(["reencode", id, "--store", location] + options).status == 0)
    #expect(try stored("again") == objects)
    // The source, and another session, stay as they are.
    let source = try stored(id)
    let refused = try program(
      ["reencode", id, "--store", location, "--quality", "sharp", "--session", "again"])
    #expect(
      refused.status == 65 && refused.errors.contains("another session of this name is there"), "\(refused.errors)")
    let own = try program(["reencode", id, "--store", location, "--quality", "small", "--session", id])
    #expect(own.status == 64 && own.errors.contains("is the source itself"), "\(own.errors)")
    #expect(try stored("again") == objects && stored(id) == source)
  }

  @Test func packsOfItAreTheSameSession() throws {
    let options = ["--quality", "small", "--session", "again"]
    _ = try program(["reencode", directory, "--output", scratch.path("smaller")] + options)
    let made = try program(["reencode", id, "--store", location, "--layout", "packed"] + options)
    #expect(made.status == 0, "\(made.errors)")
    #expect(try keys("output/again/").contains { $0.hasPrefix("pack-") })
    #expect(try program(["verify", "again", "--store", location]).status == 0)
    let film = try program(["stitch", "again", "--store", location, "--to", scratch.path("a.mp4")])
    let wanted = try program(["stitch", scratch.path("smaller/again"), "--to", scratch.path("b.mp4")])
    #expect(film.status == 0 && wanted.status == 0, "\(film.errors)")
    #expect(FileManager.default.contentsEqual(atPath: scratch.path("a.mp4"), andPath: scratch.path("b.mp4")))
  }
}
