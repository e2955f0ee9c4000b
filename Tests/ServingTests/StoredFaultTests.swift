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
    let keys = [
      "index/\(id)/head.json", "output/\(id)/" + SegmentName.manifest(starts[1]),
      "output/\(id)/" + SegmentName.video(starts[0]),
    ]
    for (number, key) in keys.enumerated() {
      let good = try #require(store.objects[key])
      var flipped = good
      flipped[good.count / 2] ^= 1
      let faults: [[UInt8]?] = [
        nil, [], Array("<html><body>Log in first</body></html>".utf8), flipped, good + good, Array(good.dropLast(3)),
        Array(repeating: 32, count: 9 << 20),
      ]
      for (kind, bad) in faults.enumerated() {
        store.objects[key] = bad
        let stored = try store.stored()
        let routes = store.routes(stored)
        for address in ["frame.jpg?t=%2B0s", "session.mp4", "thumbnail.jpg"] {
          let reply = routes.get("/sessions/\(id)/\(address)")
          // Without a head, the view of an older version counts.
          let wanted = number == 0 && kind == 0 ? [200] : [422]
          #expect(wanted.contains(reply.status), "\(key) \(kind) \(address): \(reply.status)")
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
