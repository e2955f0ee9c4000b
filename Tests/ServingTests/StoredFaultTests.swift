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

/// Faults of a store and of the disk with the copies, as `serve` shows them.
@Suite struct StoredFaultTests {
  private let store: ViewedStore

  init() throws { store = try ViewedStore() }

  private var client: ViewedObjects { store.client }

  // MARK: - Faults

  @Test func storeThatIsAwayIsNamedAndComesBack() throws {
    let id = try store.generated()
    let routes = store.routes(try store.stored())
    client.isAway = true
    for address in [
      "/sessions.json", "/sessions.json?limit=5", "/sessions/\(id)/timeline.json", "/search.json?text=order",
    ] {
      let reply = routes.get(address)
      #expect(reply.status == 503, "\(address)")
      #expect(String(decoding: reply.bytes, as: UTF8.self).contains("the store of the test is away"))
    }
    #expect(routes.get("/readyz").status == 503)
    client.isAway = false
    store.pass(ms: 2_001)
    #expect(routes.text("/sessions.json").contains(id.description))
    #expect(routes.get("/readyz").status == 200)
    #expect(routes.get("/sessions/\(id)/timeline.json").status == 200)
    // A list that was read is not shown for long when the store is away.
    client.isAway = true
    store.pass(ms: 20_000)
    try? routes.refreshList()
    #expect(routes.get("/sessions.json").status == 503)
    store.pass(ms: 1_001)
    #expect(routes.get("/sessions/\(id)/timeline.json").status == 503)
  }

  @Test func damagedObjectsAreErrorsAndNeverAnswers() throws {
    let id = try store.generated()
    let starts = try SessionDirectory(output: store.output, session: id).publishedStarts()
    let keys = ["index/\(id)/head.json", "output/\(id)/" + SegmentName.video(starts[0])]
    for (number, key) in keys.enumerated() {
      let good = try #require(store.objects[key])
      for (kind, bad) in Self.faults(of: good).enumerated() {
        store.objects[key] = bad
        let stored = try store.stored()
        let routes = store.routes(stored)
        for address in ["frame.jpg?t=%2B0s", "session.mp4", "thumbnail.jpg"] {
          let reply = routes.get("/sessions/\(id)/\(address)")
          // Without a head, the view of an older version counts. A wrong digest in it hides one segment.
          let wanted = number == 0 && kind == 0 ? [200] : number == 0 && kind == 3 ? [200, 422] : [422]
          #expect(wanted.contains(reply.status), "\(key) \(kind) \(address): \(reply.status)")
          if reply.status == 200 {
            #expect(try reply.bytes == store.routesOfDirectory().get("/sessions/\(id)/\(address)").bytes, "\(address)")
          }
          #expect(stored.bytes < 1 << 20)
        }
        #expect(client.requests().count < 80)
        // A copy that follows the store recovers.
        store.objects[key] = good
        store.pass(ms: 1_001)
        #expect(routes.get("/sessions/\(id)/frame.jpg?t=%2B0s").status == 200, "\(key) \(kind)")
      }
    }
  }

  /// The contents that may be in the place of an object; nil for nothing.
  private static func faults(of good: [UInt8]) -> [[UInt8]?] {
    var flipped = good
    flipped[good.count / 2] ^= 1
    return [
      nil, [], Array("<html><body>Log in first</body></html>".utf8), flipped, good + good, Array(good.dropLast(3)),
      Array(repeating: 32, count: 9 << 20),
    ]
  }

  /// All of a timeline but the problems.
  private func shown(_ timeline: [UInt8]) throws -> NSDictionary {
    var all = try #require(JSONSerialization.jsonObject(with: Data(timeline)) as? [String: Any])
    all["problems"] = nil
    return all as NSDictionary
  }

  /// The other segments are shown, as those of a directory are.
  @Test func damagedManifestHidesItsSegmentOnly() throws {
    let id = try store.generated()
    let starts = try SessionDirectory(output: store.output, session: id).publishedStarts()
    try #require(starts.count > 3)
    let name = SegmentName.manifest(starts[1])
    let (key, file) = ("output/\(id)/" + name, URL(fileURLWithPath: store.output + "/\(id)/" + name))
    let good = try #require(store.objects[key])
    let whole = try store.routesOfDirectory().get("/sessions/\(id)/timeline.json").bytes
    let picture = "/sessions/\(id)/frame.jpg?t=\(starts[starts.count - 1])"
    var others = Self.faults(of: good)
    // Whole, and of another segment.
    others.append(store.objects["output/\(id)/" + SegmentName.manifest(starts[2])])
    for (kind, bad) in others.enumerated() {
      store.objects[key] = bad
      let stored = try store.stored()
      let routes = store.routes(stored)
      _ = client.requests()
      let timeline = routes.get("/sessions/\(id)/timeline.json")
      let text = String(decoding: timeline.bytes, as: UTF8.self)
      #expect(
        timeline.status == 200 && text.contains(#""file":"\#(name)","problem":"s3://test/\#(key): "#),
        "\(kind): \(text)")
      if let bad {
        try Data(bad).write(to: file)
        let wanted = try store.routesOfDirectory().get("/sessions/\(id)/timeline.json")
        #expect(try shown(timeline.bytes) == shown(wanted.bytes), "\(kind)")
        try Data(good).write(to: file)
      }
      #expect(routes.get(picture).bytes == (try store.routesOfDirectory()).get(picture).bytes)
      #expect(routes.get("/sessions/\(id)/thumbnail.jpg").status == 200)
      // A film would lack the segment.
      for address in ["session.mp4", "map.json", "frame.jpg?t=\(starts[1])", name] {
        let reply = routes.get("/sessions/\(id)/\(address)")
        let text = String(decoding: reply.bytes, as: UTF8.self)
        #expect(reply.status == (address == name ? 200 : 422), "\(kind) \(address): \(reply.status)")
        #expect(!text.contains(store.scratch.path("copies")), "\(kind) \(address): \(text)")
        if address != name { #expect(text.contains("s3://test/" + key), "\(kind) \(address): \(text)") }
      }
      #expect(client.requests().count < 80)
      // It is fetched again some seconds later.
      store.pass(ms: 1_001)
      #expect(routes.get("/sessions/\(id)/timeline.json").bytes == timeline.bytes)
      #expect(client.requests() == ["HEAD index/\(id)/head.json"])
      store.pass(ms: 10_000)
      #expect(routes.get("/sessions/\(id)/timeline.json").bytes == timeline.bytes)
      #expect(client.requests().count { $0 == "GET \(key)" } == 2)
      store.objects[key] = good
      store.pass(ms: 10_001)
      #expect(routes.get("/sessions/\(id)/timeline.json").bytes == whole, "\(kind)")
      #expect(routes.get("/sessions/\(id)/session.mp4").status == 200)
      _ = client.requests()
      store.pass(ms: 10_001)
      #expect(routes.get("/sessions/\(id)/timeline.json").bytes == whole)
      #expect(client.requests() == ["HEAD index/\(id)/head.json"])
    }
  }

  @Test func sessionWithManyDamagedManifestsIsAnErrorAfterFewRequests() throws {
    try store.publish([store.batch(0..<400, everySeconds: 5)])
    let manifests = store.objects.keys.filter {
      SegmentName.start(ofManifest: String($0.dropFirst("output/walk/".count))) != nil
    }
    #expect(manifests.count == 80)
    for (count, status) in [(16, 200), (17, 422), (80, 422)] {
      for key in manifests.prefix(count) { store.objects[key] = [1] }
      let routes = store.routes(try store.stored())
      _ = client.requests()
      let reply = routes.get("/sessions/walk/timeline.json")
      #expect(reply.status == status, "\(count)")
      #expect(String(decoding: reply.bytes, as: UTF8.self).contains("s3://test/output/walk/segment-"))
      // Each is fetched twice, and then the head is looked at.
      #expect(client.requests().count <= 3 + 80 + 2 * 17)
    }
  }

  /// A look that ends early keeps what it has, also of damaged manifests.
  @Test func abandonedCopyOfADamagedSessionGoesOn() throws {
    try store.publish([store.batch(0..<300, everySeconds: 5)])
    let key = "output/walk/" + SegmentName.manifest(LongSession.startMs + 10_000)
    let good = store.objects[key]
    store.objects[key] = [1]
    let routes = store.routes(try store.stored())
    let left = Flag()
    client.before {
      if $0.hasSuffix("2340.json") && !$0.contains(SegmentName.manifest(LongSession.startMs)) { left.set() }
      if left.isSet { usleep(10_000) }
    }
    #expect(routes.get("/sessions/walk/timeline.json") { left.isSet }.status == 499)
    client.before(nil)
    let text = routes.text("/sessions/walk/timeline.json")
    #expect(text.contains("s3://test/\(key)") && text.contains(SegmentName.video(LongSession.startMs + 15_000)))
    store.objects[key] = good
    store.pass(ms: 10_001)
    #expect(
      routes.get("/sessions/walk/timeline.json").bytes
        == (try store.routesOfDirectory()).get("/sessions/walk/timeline.json").bytes)
  }

  @Test(arguments: ["same", "backwards", "elsewhere", "endless"]) func listThatDoesNotGoOnEndsWithAnError(kind: String)
    throws
  {
    let id = try store.generated()
    client.list { prefix, key in
      let keys =
        switch kind {
        case "same": [prefix + "a/head.json"]
        case "backwards": [prefix + "b/head.json", prefix + "a/head.json"]
        case "elsewhere": ["elsewhere/a"]
        default: (0..<2_000).map { (key ?? prefix) + String(format: "z%08d/x", $0) }
        }
      return keys.map { ObjectInfo(key: $0, size: .max, tag: ObjectTag("x")) }
    }
    let stored = try store.stored()
    let routes = store.routes(stored)
    let reply = routes.get("/sessions/\(id)/timeline.json")
    #expect(reply.status == 503 && String(decoding: reply.bytes, as: UTF8.self).contains("list s3://test/"))
    if kind != "endless" {
      #expect(routes.get("/sessions.json").status == 503)
      #expect(client.requests().count < 30)
    }
    #expect(stored.bytes < 1 << 20)
  }

  @Test func listedHeadsThatCannotBeReadAreListedWithTheirFault() throws {
    _ = try store.generated()
    store.objects["index/bad/head.json"] = Array("<html>".utf8)
    store.objects["index/huge/head.json"] = Array(repeating: 32, count: 5 << 20)
    store.objects["index/a b/head.json"] = [1]
    let text = store.routes(try store.stored()).text("/sessions.json")
    #expect(
      text.contains(#"index/bad/head.json"#) && text.contains(#""session":"huge""#) && !text.contains("a b"), "\(text)")
  }

  // MARK: - Disk

  @Test func copiesKeepTheirBound() throws {
    let id = try store.generated()
    let other = try store.generated(3)
    let videos = store.objects.keys.filter { $0.hasPrefix("output/\(id)/") && $0.hasSuffix(".mp4") }
    let sizes = videos.map { store.objects[$0]?.count ?? 0 }
    // The larger one of the sessions without their videos, and two videos.
    let bases = try [id, other].map { id in
      let stored = try store.stored()
      #expect(store.routes(stored).get("/sessions/\(id)/timeline.json").status == 200)
      return stored.bytes
    }
    let bound = (bases.max() ?? 0) + 2 * (sizes.max() ?? 0)
    #expect(bases[0] + sizes.reduce(0, +) > bound)
    let stored = try store.stored(maximumBytes: bound)
    let routes = store.routes(stored)
    let wanted = try store.routesOfDirectory()
    for _ in 0..<2 {
      for video in videos {
        let address = "/sessions/\(id)/" + (video as NSString).lastPathComponent
        #expect(routes.get(address).bytes == wanted.get(address).bytes)
        #expect(stored.bytes <= bound)
      }
    }
    #expect(routes.get("/sessions/\(id)/session.mp4").bytes == wanted.get("/sessions/\(id)/session.mp4").bytes)
    // Another session takes the place of the first one.
    #expect(routes.get("/sessions/\(other)/session.mp4").bytes == wanted.get("/sessions/\(other)/session.mp4").bytes)
    #expect(stored.bytes <= bound)
    // Room for either, but not for both.
    let narrow = try store.stored(maximumBytes: bases[0] + bases[1] - 1)
    let served = store.routes(narrow)
    for session in [id, other, id] {
      let address = "/sessions/\(session)/timeline.json"
      #expect(served.get(address).bytes == wanted.get(address).bytes && narrow.bytes < bases[0] + bases[1])
    }
    let small = store.routes(try store.stored(maximumBytes: 100))
    #expect(small.get("/sessions/\(id)/timeline.json").status == 503)
  }

  @Test func freeSpaceOfTheDiskIsLeft() throws {
    let id = try store.generated()
    let free = Mutex(1 << 40)
    var freeSpace = FreeSpace(minimum: 1 << 30)
    freeSpace.freeBytes = { _ in free.withLock { $0 } }
    let routes = store.routes(try store.stored(maximumBytes: 1 << 30, freeSpace))
    #expect(routes.get("/sessions/\(id)/timeline.json").status == 200)
    free.withLock { $0 = 1 << 30 }
    let reply = routes.get("/sessions/\(id)/session.mp4")
    #expect(reply.status == 503 && String(decoding: reply.bytes, as: UTF8.self).contains("--min-free"))
    #expect(routes.get("/sessions/\(id)/timeline.json").status == 200)
  }

  @Test func copyThatACleanerRemovesIsMadeAgain() throws {
    let id = try store.generated()
    let stored = try store.stored()
    let routes = store.routes(stored)
    let wanted = routes.get("/sessions/\(id)/session.mp4").bytes
    for name in ["segment-", "session.json", "", "..", "../.."] {
      var path = stored.path
      if name.hasPrefix("s") || name.isEmpty {
        let copy = try #require(try TestSupport.names(in: stored.path).last)
        path += "/\(copy)"
        if !name.isEmpty {
          let file = try #require(try TestSupport.names(in: "\(path)/\(id)").first { $0.hasPrefix(name) })
          path += "/\(id)/\(file)"
        }
      } else {
        path = URL(fileURLWithPath: path + "/" + name).standardizedFileURL.path
      }
      try FileManager.default.removeItem(atPath: path)
      for address in ["timeline.json", "frame.jpg?t=%2B0s"] {
        #expect(routes.get("/sessions/\(id)/\(address)").status == 200, "\(name) \(address)")
      }
      store.pass(ms: 1_001)
      #expect(routes.get("/sessions/\(id)/session.mp4").bytes == wanted, "\(name)")
    }
  }
}
