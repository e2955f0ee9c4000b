import Foundation
import TestSupport
import Testing

@testable import Remote

/// `examples/embedding/ShowStore`, which reads an object store with the library's public API only.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct EmbeddedStoreTests: RemoteSuite {
  let servers: RemoteServers

  init() throws { servers = try RemoteServers() }

  private func show(_ store: String, _ session: String, _ others: [String: String] = [:]) throws -> Tool.Result {
    try run("ShowStore", [store, session, scratch.path("stored")], environment.merging(others) { $1 })
  }

  private func run(_ example: String, _ words: [String], _ variables: [String: String]) throws -> Tool.Result {
    let build = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent()
    let result = try Tool.run(build.path + "/" + example, words, environment: variables)
    #expect(result.errors.isEmpty, "\(result.errors)")
    return result
  }

  /// A program gets the same files for its players as of a directory, byte for byte.
  @Test func sessionsOfAStoreAreListedAndPlayed() throws {
    #expect(try show(location, "walk").text == "no session walk\n")
    try FileManager.default.copyItem(atPath: Fixture("jittered").path, toPath: scratch.path("walk"))
    let added = try run(["enqueue", "--session", "walk", "--final", scratch.path("walk")])
    #expect(added.status == 0, "\(added.errors)")
    #expect(try run(["run", "--drain"]).status == 0)
    let encoded = try Tool.run(
      EncoderWorker.path, ["encode", "--final", scratch.path("walk"), "--output", scratch.path("output")])
    #expect(encoded.status == 0, "\(encoded.errors)")
    let shown = try show(location, "walk")
    let wanted = try run("ShowSessions", [scratch.path("output"), "walk", scratch.path("directory")], environment)
    #expect(shown.status == 0 && shown.text.hasPrefix("walk: 11 frames\n"), "\(shown.text)")
    #expect(wanted.text.hasPrefix(shown.text), "\(wanted.text)")
    let played = try names(in: scratch.path("stored"))
    #expect(try names(in: scratch.path("directory")).filter { $0 != "first.jpg" } == played)
    #expect(played.count { $0.hasSuffix(".m4s") } > 2 && Set(played).isSuperset(of: ["frame.jpg", "session.m3u8"]))
    for name in played {
      let files = ["stored", "directory"].map { FileManager.default.contents(atPath: scratch.path("\($0)/\(name)")) }
      #expect(files[0] == files[1] && files[0]?.isEmpty == false, "\(name)")
    }
    // The copies are gone.
    let files = try FileManager.default.subpathsOfDirectory(atPath: scratch.path(""))
    #expect(!files.contains { $0.contains("encoder-worker-") && $0.hasSuffix(".mp4") }, "\(files)")
    let nobody = try show(location, "nobody")
    #expect(nobody.status == 1 && nobody.text.hasSuffix("no session nobody\n"))
  }

  @Test func wrongPlacesAreErrors() throws {
    for (store, variables, cause) in [
      ("bucket", [:], "s3://"), ("s3://nowhere", [:], "NoSuchBucket"),
      (location, ["AWS_ENDPOINT_URL": "ftp://127.0.0.1"], "AWS_ENDPOINT_URL"),
    ] {
      let result = try show(store, "walk", variables)
      #expect(result.status == 1 && result.text.hasPrefix("not shown: "), "\(result.text)")
      #expect(result.text.contains(cause), "\(result.text)")
    }
  }
}
