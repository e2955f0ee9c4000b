import Foundation
import TestSupport
import Testing

@testable import Remote

/// `serve --store` shows the sessions of a store as `serve` shows those of a directory.
@Suite(
  .enabled(if: QueueServer.isInstalled, "redis-server is not there; scripts/setup test installs it"),
  .enabled(if: StoreServer.isInstalled, "\(StoreServer.reason)"))
struct StoredServeTests: RemoteSuite {
  let servers: RemoteServers
  private let session: GeneratedSession

  init() throws {
    servers = try RemoteServers()
    session = try GeneratedSession(seed: 7, in: servers.scratch)
  }

  private var id: String { session.name }

  private func copies() -> [String] {
    let names = FileManager.default.enumerator(atPath: scratch.path("encoder-worker-\(geteuid())"))?.allObjects ?? []
    return names.map { "\($0)" }.filter { $0.contains(id) }
  }

  @Test(arguments: ["plain", "packed"]) func answersEqualThoseOfADirectory(layout: String) throws {
    try encode(session, ["--layout", layout])
    let directory = try RunningServer(["serve", scratch.path("output")])
    let store = try RunningServer(["serve", "--store", location], environment: environment)
    let place = "/sessions/\(id)/"
    var paths = [
      "timeline.json", "faults.json", "session.mp4", "session.gif?max-side=100&to=+3s", "frame.jpg?t=+1s",
      "frame.png?t=+2s", "thumbnail.jpg", "thumbnail.jpg?t=last", "pictures.jsonl", "map.json", "none",
    ].map { place + $0.replacing("+", with: "%2B") }
    paths += try FileManager.default.contentsOfDirectory(atPath: scratch.path("output/\(id)"))
      .filter { !$0.hasPrefix(".") }.map { place + $0 }
    paths += ["/", place, "/search.json?text=order", "/sessions/other/timeline.json"]
    let timeline = try directory.get(place + "timeline.json").text
    paths += timeline.matches(of: /"fragment":"([^"]+)"/).map { place + String($0.1) }
    for path in paths {
      let (own, wanted) = (try store.get(path), try directory.get(path))
      #expect(own.status == wanted.status && own.body == wanted.body, "\(path): \(own.status), not \(wanted.status)")
    }
    let lists = try [store, directory].map { server in
      try server.get("/sessions.json").text.replacing(/"revision":"[^"]*"/, with: "")
    }
    #expect(lists[0] == lists[1] && lists[0].contains(id))
    let video = try #require(paths.first { $0.contains("/segment-") && $0.hasSuffix(".mp4") })
    let part = try store.get(video, ["Range": "bytes=10-19"])
    #expect(part.status == 206 && part.body.count == 10)
    #expect(
      try store.get("/readyz").status == 200 && store.get("/metrics").text.contains("encoder_worker_sessions 1\n"))
    #expect(!copies().isEmpty)
    // A deleted session is gone.
    let deleted = try Tool.run(EncoderWorker.path, ["delete", id, "--store", location], environment: environment)
    #expect(deleted.status == 0, "\(deleted.errors)")
    Thread.sleep(forTimeInterval: 1.1)
    #expect(try store.get(place + "timeline.json").status == 410 && copies().isEmpty)
    #expect(store.stop() == 0)
    #expect(
      try FileManager.default.subpathsOfDirectory(atPath: scratch.path("encoder-worker-\(geteuid())")) == [".staging"])
  }

  @Test func argumentsNameADirectoryOrAStore() throws {
    try encode(session)
    let both = try Tool.run(
      EncoderWorker.path, ["serve", scratch.path("output"), "--store", location, "--listen", "127.0.0.1:0"],
      environment: environment)
    #expect(both.status == 64 && both.errors.contains("not both"), "\(both.errors)")
    let none = try Tool.run(EncoderWorker.path, ["serve"], environment: environment)
    #expect(none.status == 64 && none.errors.contains("--store"), "\(none.errors)")
    // A store of the settings counts if there is no directory.
    let settings = environment.merging(["ENCODER_WORKER_STORE": location]) { $1 }
    let store = try RunningServer(["serve"], environment: settings)
    #expect(try store.get("/sessions.json").text.contains(id))
    let directory = try RunningServer(["serve", scratch.directory("none")], environment: settings)
    #expect(try !directory.get("/sessions.json").text.contains(id))
  }

  @Test func storeThatIsAwayIsAnError() throws {
    try encode(session)
    let other = "s3://no-such-bucket-\(UUID().uuidString.lowercased())"
    let store = try RunningServer(["serve", "--store", other], environment: environment)
    for path in ["/sessions.json", "/sessions/\(id)/timeline.json"] {
      let reply = try store.get(path)
      #expect(reply.status == 503 && reply.text.contains("NoSuchBucket"), "\(path): \(reply.status) \(reply.text)")
    }
  }
}
