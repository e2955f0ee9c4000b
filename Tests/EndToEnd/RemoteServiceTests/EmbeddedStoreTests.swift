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
    let build = URL(fileURLWithPath: EncoderWorker.path).deletingLastPathComponent()
    let variables = environment.merging(others) { $1 }
    let result = try Tool.run(
      build.path + "/ShowStore", [store, session, scratch.path("frame.jpg")], environment: variables)
    #expect(result.errors.isEmpty, "\(result.errors)")
    return result
  }

  @Test func sessionsOfAStoreAreListedAndShown() throws {
    #expect(try show(location, "walk").text == "no session walk\n")
    let added = try run(["enqueue", "--session", "walk", Fixture("jittered").path])
    #expect(added.status == 0, "\(added.errors)")
    #expect(try run(["run", "--drain"]).status == 0)
    let encoded = try Tool.run(
      EncoderWorker.path, ["encode", Fixture("jittered").path, "--output", scratch.path("output")])
    #expect(encoded.status == 0, "\(encoded.errors)")
    let shown = try show(location, "walk")
    #expect(shown.status == 0 && shown.text.hasPrefix("walk: 11 frames\n"), "\(shown.text)")
    // As it is in a directory.
    let session = try PublishedSession(scratch.path("output/jittered"))
    let frame = try #require(session.captured.last { $0.timeMs <= session.index.startMs + 1_500 })
    #expect(shown.text.contains("captured at \(frame.timeMs), on screen until "), "\(shown.text)")
    #expect(try Data(contentsOf: URL(fileURLWithPath: scratch.path("frame.jpg"))).starts(with: [0xFF, 0xD8]))
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
