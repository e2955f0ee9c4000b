import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import Serving
@testable import Sessions
@testable import Showing

/// The sessions of a store, as `serve` shows them.
@Suite struct StoredRoutesTests {
  private let store: ViewedStore

  init() throws { store = try ViewedStore() }

  private var client: ViewedObjects { store.client }

  /// Makes a store of the files of the directory, with their times, and of the index in memory.
  private func objectsOfDirectory() throws -> DirectoryObjects {
    let (root, files) = (store.scratch.path("store"), FileManager.default)
    for path in try files.subpathsOfDirectory(atPath: store.output) where !path.hasPrefix(".") {
      var isDirectory: ObjCBool = false
      let source = store.output + "/" + path
      guard files.fileExists(atPath: source, isDirectory: &isDirectory), !isDirectory.boolValue,
        !path.hasSuffix(".lock")
      else { continue }
      let target = root + "/output/" + path
      try DurableFile.makeDirectories(DurableFile.parentDirectory(of: target))
      try files.linkItem(atPath: source, toPath: target)
    }
    for key in store.objects.keys where key.hasPrefix("index/") {
      try DurableFile.makeDirectories(DurableFile.parentDirectory(of: root + "/" + key))
      try DurableFile.create(root + "/" + key, store.objects[key] ?? [])
    }
    return DirectoryObjects(root)
  }

  /// Writes a word for each segment of a session in the directory, but for the last one.
  private func write(words text: String, of id: SessionID) throws {
    let directory = SessionDirectory(output: store.output, session: id)
    for start in try directory.publishedStarts().dropLast() {
      let segment = try directory.segment(start)
      let words = SegmentText(
        session: id, startMs: start, endMs: segment.endMs, sha256: segment.sha256, engine: "tesseract 5",
        language: "eng", pictures: 1, unreadMs: [], leftOut: 0,
        words: [
          VisibleWord(
            text: text, box: PictureRegion(x: 1, y: 2, width: 30, height: 10), confidence: 90,
            shownMs: start..<segment.endMs)
        ])
      try DurableFile.create(directory.path + "/" + SegmentName.text(start), words.bytes)
    }
  }

  @Test(arguments: [(3, false), (7, true), (8, false)])
  func answersEqualThoseOfADirectory(seed: Int, hls: Bool) throws {
    let id = try store.generated(seed, hls: hls)
    try write(words: "Order", of: id)
    let stored = try store.stored(objectsOfDirectory())
    let (own, wanted) = (store.routes(stored), try store.routesOfDirectory())
    let first = GeneratedSession.startMs
    let last = try #require(try SessionDirectory(output: store.output, session: id).lastStart())
    var addresses = [
      "timeline.json", "faults.json", "session.m3u8", "iframes.m3u8", "multivariant.m3u8", "frame.jpg?t=%2B1s",
      "frame.png?t=\(last)", "frame.jpg?t=\(last)&max-side=100", "frame.jpg?t=1", "thumbnail.jpg",
      "thumbnail.jpg?t=last",
      "thumbnail.jpg?t=\(first)", "session.mp4", "session.mp4?from=%2B1s&to=%2B4s&speed=2",
      "session.gif?max-side=100&to=%2B5s",
      "pictures.jsonl", "pictures.jsonl?changed-only&max=3", "map.json", "map.json?idle=cut", "none.mp4",
      "segment-0000000000001.mp4", "segment-0000000000001.json", "session-end.json",
    ]
    addresses += try TestSupport.names(in: store.output + "/\(id)").filter { $0 != "hls" && !$0.hasPrefix(".") }
    let timeline = wanted.text("/sessions/\(id)/timeline.json")
    addresses += timeline.matches(of: /"(?:fragment|initialization)":"([^"]+)"/).map { String($0.1) }
    addresses += HLSPlaylist.files(in: wanted.get("/sessions/\(id)/session.m3u8").bytes)
    var answered = 0
    for address in addresses {
      let (mine, other) = (own.get("/sessions/\(id)/\(address)"), wanted.get("/sessions/\(id)/\(address)"))
      #expect(
        mine.status == other.status && mine.bytes == other.bytes, "\(address): \(mine.status), not \(other.status)")
      if other.status == 200 { answered += 1 }
    }
    #expect(answered > 25, "\(answered)")
    for address in ["/search.json?text=order", "/search.json?text=other", "/sessions.json", "/sessions.json?limit=3"] {
      let texts = [own, wanted].map { $0.text(address).replacing(/"revision":"[^"]*"/, with: "") }
      #expect(
        texts[0] == texts[1] && texts[1].contains(address.contains("text=other") ? "other" : "\(id)"), "\(address)")
    }
    #expect(own.get("/sessions/other/timeline.json").status == 404)
    stored.remove()
    #expect(try TestSupport.names(in: store.scratch.path("copies/.staging")).isEmpty)
  }

  // MARK: - Requests

  @Test func unchangedSessionNeedsOneRequestASecond() throws {
    let id = try store.generated()
    let routes = store.routes(try store.stored())
    let segments = try SessionDirectory(output: store.output, session: id).publishedStarts().count
    #expect(routes.get("/sessions/\(id)/timeline.json").status == 200)
    // The head, the list with its end, and the manifests.
    #expect(client.requests().count == 3 + segments)
    #expect(routes.get("/sessions/\(id)/timeline.json").status == 200)
    #expect(client.requests().isEmpty)
    for address in ["timeline.json", "session.json", "map.json", "faults.json", "frame.jpg?t=1", "session.ffconcat"] {
      store.pass(ms: 1_001)
      _ = routes.get("/sessions/\(id)/\(address)")
      #expect(client.requests() == ["HEAD index/\(id)/head.json"], "\(address)")
    }
    // The picture needs its video, once.
    for count in [2, 1] {
      store.pass(ms: 1_001)
      #expect(routes.get("/sessions/\(id)/frame.jpg?t=%2B0s").status == 200)
      #expect(client.requests().count == count)
    }
    // A worker may keep playlists of an open session in the store.
    store.pass(ms: 1_001)
    _ = routes.get("/sessions/\(id)/session.m3u8")
    #expect(client.requests().count <= 2)
    for _ in 0..<2 { #expect(routes.get("/sessions/other/timeline.json").status == 404) }
    #expect(client.requests().count == 2)
  }

  @Test func longSessionNeedsAGETForEachManifestAndFewOthers() throws {
    let count = Extent.of(400, full: 17_280)
    // A batch has 3 600 frames at most.
    for first in stride(from: 0, to: count, by: 3_000) {
      try store.publish([store.batch(5 * first..<5 * min(first + 3_000, count), everySeconds: 5)])
    }
    let stored = try store.stored()
    let routes = store.routes(stored)
    let wanted = try store.routesOfDirectory()
    var requests: [String] = []
    // A picture for the list needs the head, a page, a manifest and a video.
    for (address, most) in [("thumbnail.jpg", 4), ("thumbnail.jpg?t=last", 3)] {
      store.pass(ms: 1_001)
      let reply = routes.get("/sessions/walk/\(address)")
      #expect(reply.status == 200 && reply.bytes == wanted.get("/sessions/walk/\(address)").bytes)
      requests = client.requests()
      #expect(requests.count <= most, "\(requests)")
      #expect(routes.get("/sessions/walk/\(address)").bytes == reply.bytes && client.requests().count <= 1)
    }
    store.pass(ms: 1_001)
    #expect(routes.get("/sessions/walk/timeline.json").status == 200)
    requests = client.requests()
    // The head, pages of 64 segments, lists of 1 000 objects with their end, and the manifests.
    #expect(requests.count { $0.hasPrefix("GET output/walk/segment-") } == count)
    #expect(requests.count <= count + 3 + count / 64 + 2 * count / 1_000, "\(requests.count)")
    try store.publish([store.batch(5 * count..<5 * count + 15)])
    store.pass(ms: 1_001)
    #expect(
      routes.text("/sessions/walk/timeline.json").contains(
        "segment-\(LongSession.startMs + Int64(5 * count + 10) * 1_000)"))
    requests = client.requests()
    #expect(requests.count <= 10, "\(requests)")
    #expect(
      routes.get("/sessions/walk/timeline.json").bytes
        == (try store.routesOfDirectory()).get("/sessions/walk/timeline.json").bytes)
  }

  @Test func manyRequestsAtOnceCopyASessionOnce() throws {
    let id = try store.generated()
    let routes = store.routes(try store.stored())
    let statuses = Mutex<[Int]>([])
    let threads = ThreadGroup()
    for _ in 0..<12 {
      try threads.start {
        for address in ["timeline.json", "frame.jpg?t=%2B0s", "map.json"] {
          let status = routes.get("/sessions/\(id)/\(address)").status
          statuses.withLock { $0.append(status) }
        }
      }
    }
    threads.join()
    #expect(statuses.withLock { $0 } == Array(repeating: 200, count: 36))
    let requests = client.requests()
    #expect(requests.count == Set(requests).count + 1, "\(requests)")  // The list ends with an empty one.
  }

  @Test func abandonedRequestEndsAndTheNextOneGoesOn() throws {
    try store.publish([store.batch(0..<600, everySeconds: 5)])
    let routes = store.routes(try store.stored())
    let left = Flag()
    client.before {
      if $0.hasSuffix("2340.json") { left.set() }
      if left.isSet { usleep(10_000) }
    }
    #expect(routes.get("/sessions/walk/timeline.json") { left.isSet }.status == 499)
    let first = client.requests().filter { $0.hasPrefix("GET output/") }
    #expect(first.count < 120)
    #expect(routes.get("/sessions/walk/timeline.json").status == 200)
    let second = client.requests().filter { $0.hasPrefix("GET output/") }
    #expect(first.count + second.count == 120, "\(first.count) \(second.count)")
  }

  // MARK: - Changes

  @Test func openSessionFollowsTheStore() throws {
    let stored = try store.stored()
    let routes = store.routes(stored)
    try store.publish([store.batch(0..<5)])
    #expect(!routes.text("/sessions/walk/timeline.json").contains("segment-\(LongSession.startMs + 5_000)"))
    try store.publish([store.batch(5..<10)])
    #expect(!routes.text("/sessions/walk/timeline.json").contains("segment-\(LongSession.startMs + 5_000)"))
    store.pass(ms: 1_001)
    #expect(routes.text("/sessions/walk/timeline.json").contains("segment-\(LongSession.startMs + 5_000)"))
    #expect(routes.text("/sessions/walk/timeline.json").contains(#""complete":false"#))
    let id = try #require(SessionID("walk"))
    _ = try ObjectSession(id: id, objects: store.objects, name: "").recordEnd(
      SessionEnd(id, .request, endedMs: 1), cancellation: .never)
    store.pass(ms: 1_001)
    #expect(routes.text("/sessions/walk/timeline.json").contains(#""complete":true"#))
    #expect(routes.text("/sessions/walk/session.m3u8").hasSuffix("#EXT-X-ENDLIST\n"))
    // A batch of earlier time, and one of another session under the same ID.
    try store.publish([store.batch(-20..<(-15))])
    store.pass(ms: 1_001)
    #expect(routes.text("/sessions/walk/timeline.json").contains("segment-\(LongSession.startMs - 20_000)"))
    #expect(
      routes.get("/sessions/walk/timeline.json").bytes
        != (try store.routesOfDirectory()).get("/sessions/other/timeline.json").bytes)
  }

  @Test func playlistOfAWorkerIsShownAsItChanges() throws {
    let routes = store.routes(try store.stored())
    try store.publish([store.batch(0..<10)], hls: true)
    for key in store.objects.keys { client.date(key, WallClock.nowMs) }
    let key = "output/walk/hls/session.m3u8"
    #expect(routes.get("/sessions/walk/session.m3u8").bytes == store.objects[key])
    #expect(routes.get("/sessions/walk/iframes.m3u8").bytes == store.objects["output/walk/hls/iframes.m3u8"])
    for name in HLSPlaylist.files(in: try #require(store.objects[key])) {
      #expect(routes.get("/sessions/walk/\(name)").bytes == store.objects["output/walk/hls/\(name)"], "\(name)")
    }
    let changed = try #require(store.objects[key]) + Array("#EXT-X-ENDLIST\n".utf8)
    store.objects[key] = changed
    Thread.sleep(forTimeInterval: 1.1)
    store.pass(ms: 1_100)
    #expect(routes.get("/sessions/walk/session.m3u8").bytes == changed)
    // A page of a proxy is no playlist.
    store.objects[key] = Array("<html>".utf8)
    store.pass(ms: 1_100)
    #expect(store.routes(try store.stored()).text("/sessions/walk/session.m3u8").hasPrefix("#EXTM3U"))
  }

  @Test func fragmentThatOnlyTheStoreHasIsServedIfItIsOne() throws {
    let id = try store.generated(hls: true)
    let key = "output/\(id)/hls/session.m3u8"
    let name = "segment-1767859512340-0123abcd.m4s"
    store.objects[key] = try #require(store.objects[key]) + Array("\(name)\n".utf8)
    let fragment = try #require(store.objects.keys.first { $0.hasSuffix(".m4s") })
    let routes = store.routes(try store.stored())
    #expect(routes.get("/sessions/\(id)/session.m3u8").status == 200)
    #expect(routes.get("/sessions/\(id)/\(name)").status == 404)
    store.objects["output/\(id)/hls/\(name)"] = Array("<html>Log in first</html>".utf8)
    #expect(routes.get("/sessions/\(id)/\(name)").status == 422)
    store.objects["output/\(id)/hls/\(name)"] = store.objects[fragment]
    #expect(routes.get("/sessions/\(id)/\(name)").bytes == store.objects[fragment])
    // No playlist lists this one.
    let other = "segment-1767859512340-0123abce.m4s"
    store.objects["output/\(id)/hls/\(other)"] = store.objects[fragment]
    #expect(routes.get("/sessions/\(id)/\(other)").status == 404)
  }

  @Test func deletedSessionIsGoneWithItsCopies() throws {
    let id = try store.generated()
    let stored = try store.stored()
    let routes = store.routes(stored)
    #expect(routes.text("/sessions.json").contains(id.description))
    for address in ["timeline.json", "session.mp4", "thumbnail.jpg", "map.json"] {
      #expect(routes.get("/sessions/\(id)/\(address)").status == 200)
    }
    #expect(stored.bytes > 0)
    let deletion = ObjectDeletion(store.objects, name: "s3://test/")
    _ = try deletion.add(Tombstone(id, deletedAtMs: 1, reason: "x"))
    _ = try deletion.remove(id)
    store.pass(ms: 1_001)
    for address in ["", "timeline.json", "session.mp4", "thumbnail.jpg", "map.json", "session.json", "none"] {
      let reply = routes.get("/sessions/\(id)/\(address)")
      #expect(reply.status == 410 && String(decoding: reply.bytes, as: UTF8.self).contains("1970-01-01"), "\(address)")
    }
    #expect(stored.bytes == 0)
    // The same without a request for the session: the list finds it.
    let other = try store.generated(3)
    #expect(routes.get("/sessions/\(other)/session.mp4").status == 200 && stored.bytes > 0)
    _ = try deletion.add(Tombstone(other, deletedAtMs: 1, reason: "x"))
    store.pass(ms: 100_000)
    try routes.refreshList()
    try routes.forgetRemovedSessions()
    #expect(stored.bytes == 0)
    #expect(!routes.text("/sessions.json").contains("generated"))
  }

  @Test func sessionThatIsPublishedAgainAfterItsDeletionIsAnotherOne() throws {
    let routes = store.routes(try store.stored())
    try store.publish([store.batch(0..<5)])
    #expect(routes.get("/sessions/walk/session.mp4").status == 200)
    let id = try #require(SessionID("walk"))
    let deletion = ObjectDeletion(store.objects, name: "s3://test/")
    _ = try deletion.add(Tombstone(id, deletedAtMs: 1, reason: "x"))
    _ = try deletion.remove(id)
    #expect(try deletion.removeTombstone(of: id))
    try DurableFile.removeTree(store.output)
    try store.publish([store.batch(0..<3)])
    store.pass(ms: 1_001)
    for address in ["timeline.json", "session.mp4", "pictures.jsonl"] {
      let (own, wanted) = (routes.get("/sessions/walk/\(address)"), try store.routesOfDirectory())
      #expect(own.status == 200 && own.bytes == wanted.get("/sessions/walk/\(address)").bytes, "\(address)")
    }
  }

  @Test func newSessionThatTheListDoesNotKnowKeepsItsCopy() throws {
    let routes = store.routes(try store.stored())
    try store.publish([store.batch(0..<5)])
    try routes.refreshList()
    let id = try store.generated()
    store.pass(ms: 1_001)
    #expect(routes.get("/sessions/\(id)/timeline.json").status == 200)
    _ = client.requests()
    store.pass(ms: 1_001)
    try routes.forgetRemovedSessions()
    #expect(routes.get("/sessions/\(id)/timeline.json").status == 200)
    #expect(client.requests() == ["HEAD index/\(id)/head.json"])
    // A session without any object is forgotten once the list has missed it.
    for key in store.objects.keys where key.contains("/\(id)/") { store.objects[key] = nil }
    store.pass(ms: 100_000)
    try routes.refreshList()
    try routes.forgetRemovedSessions()
    #expect(routes.get("/sessions/\(id)/timeline.json").status == 404)
  }
}
