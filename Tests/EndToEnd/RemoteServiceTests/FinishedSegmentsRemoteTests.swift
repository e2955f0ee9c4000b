import Foundation
import TestSupport
import Testing

@testable import Remote

/// Finished segments through a queue and an object store.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct FinishedSegmentsRemoteTests: RemoteSuite {
  let servers: RemoteServers

  init() throws { servers = try RemoteServers() }

  @Test func storeHasTheFilesOfAnOutputDirectory() throws {
    let folder = try SegmentFolder(in: scratch)
    try folder.video("0.mp4")
    try folder.copy("0.mp4", as: "1.mp4")
    try folder.events([SegmentFolder.event(0, atMs: 0), SegmentFolder.event(1, atMs: 9_000)])
    #expect(try EncoderWorker.run("encode", folder.path, "-o", scratch.path("out")).status == 0)
    for _ in 0..<2 {
      let enqueued = try run(["enqueue", "--session", "replay", folder.path])
      #expect(enqueued.status == 0, "\(enqueued.errors)")
      let drained = try run(["run", "--drain"])
      #expect(drained.status == 0, "\(drained.errors)")
    }
    let names = try names(in: scratch.path("out/replay")).filter { $0.hasPrefix("segment-") }
    #expect(try keys("output/replay/").filter { $0.hasPrefix("segment-") }.sorted() == names && names.count == 4)
    for name in names {
      let stored = try #require(try client.get("output/replay/" + name, limit: 1 << 20)).bytes
      #expect(Data(stored) == (try Data(contentsOf: URL(fileURLWithPath: scratch.path("out/replay/" + name)))))
    }
    #expect(try keys("quarantine/").isEmpty && keys("incoming/").isEmpty)
    let events = try streamed().filter { $0.event == "batch.published" }
    #expect(!events.isEmpty)
  }
}
