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

/// The list of the sessions of a store, as `serve` shows it.
@Suite struct StoredListTests {
  private let store: ViewedStore

  init() throws { store = try ViewedStore() }

  private var client: ViewedObjects { store.client }

  /// Writes the heads of sessions; the last one is the newest.
  private func heads(_ range: Range<Int>) throws {
    let id = try #require(SessionID("walk"))
    if store.objects["index/walk/head.json"] == nil { try store.publish([store.batch(0..<5)]) }
    let head = String(decoding: try #require(store.objects["index/\(id)/head.json"]), as: UTF8.self)
    for number in range {
      let name = String(format: "s%06d", 999_999 - number)
      let startMs = LongSession.startMs + Int64(number) * 1_000
      store.objects["index/\(name)/head.json"] = Array(
        head.replacing("\"walk\"", with: "\"\(name)\"").replacing("\(LongSession.startMs)", with: "\(startMs)").utf8)
      client.date("index/\(name)/head.json", startMs)
    }
  }

  private func names(_ text: String) -> [String] { text.matches(of: /"session":"([^"]+)"/).map { String($0.1) } }

  @Test func firstPageOfAThousandSessionsNeedsTwentyRequestsAtMost() throws {
    try heads(0..<1_000)
    let routes = store.routes(try store.stored())
    let first = routes.text("/sessions.json?limit=10")
    #expect(client.requests().count <= 20)
    // The newest of the first list of the store.
    #expect(
      first.contains(#""partial":true"#) && names(first).first == "s999000" && names(first).count == 10, "\(first)")
    try routes.refreshList()
    #expect(client.requests().count <= 1_004)
    let all = routes.text("/sessions.json?limit=10")
    #expect(!all.contains("partial") && all.contains(#""total":1001"#) && names(all)[1] == "s999001", "\(all)")
    #expect(client.requests().isEmpty)
    // A round without changes, and one with a new session, a changed one and a removed one.
    store.pass(ms: 5_000)
    try routes.refreshList()
    #expect(client.requests() == ["LIST index/", "LIST index/", "LIST index/"])
    try heads(1_000..<1_001)
    let key = "index/s999500/head.json"
    store.objects[key] = Array(
      String(decoding: try #require(store.objects[key]), as: UTF8.self).replacing(/"frames":\d+/, with: "\"frames\":77")
        .utf8)
    store.objects["index/s999600/head.json"] = nil
    store.pass(ms: 5_000)
    try routes.refreshList()
    #expect(client.requests().count == 5)
    let changed = routes.text("/sessions.json")
    #expect(names(changed).first == "s998999" && changed.contains(#""frames":77"#) && !changed.contains("s999600"))
  }

  /// The size of the store does not delay the first page.
  @Test func firstPageOfAHundredThousandSessionsNeedsTwentyRequestsAtMost() throws {
    try store.publish([store.batch(0..<5)])
    let count = 100_000
    let heads = ManyHeads(
      count, like: String(decoding: try #require(store.objects["index/walk/head.json"]), as: UTF8.self))
    let routes = store.routes(try store.stored(heads))
    let first = routes.text("/sessions.json?limit=500")
    #expect(heads.counts.requests <= 20 && names(first).first == "s000999" && first.contains(#""partial":true"#))
    guard Extent.isFull else { return }
    try routes.refreshList()
    #expect(heads.counts.requests == count / 1_000 + 1 + count)
    let known = heads.counts.requests
    let page = routes.text("/sessions.json?limit=500")
    #expect(page.contains(#""total":100000"#) && names(page).first == "s099999" && names(page).count == 500)
    #expect(heads.counts.requests == known)
  }

  /// A page of the list asks for the faults of each session in view.
  @Test func longSessionIsNotCopiedForItsFaultsInAList() throws {
    try store.publish([store.batch(0..<505, everySeconds: 5)])
    let id = try store.generated()
    let routes = store.routes(try store.stored())
    try routes.refreshList()
    _ = client.requests()
    let address = "/sessions/walk/faults.json"
    #expect(
      routes.text(address + "?for=list") == #"{"format":"session-faults/1","session":"walk","unread":true}"# + "\n")
    #expect(client.requests().count <= 1)
    let wanted = try store.routesOfDirectory()
    let short = "/sessions/\(id)/faults.json"
    #expect(routes.text(short + "?for=list") == wanted.text(short) && routes.text(short) == wanted.text(short))
    // Once it is copied, its faults are known.
    #expect(routes.text(address) == wanted.text(address))
    #expect(
      routes.text(address + "?for=list") == wanted.text(address)
        && wanted.text(address + "?for=list") == wanted.text(address))
  }

  @Test func listIsReadOnTimeAlsoWithoutAThreadThatKeepsIt() throws {
    try heads(0..<3)
    let routes = store.routes(try store.stored())
    #expect(names(routes.text("/sessions.json")).count == 4)
    #expect(client.requests().count == 2 + 4)
    // It is due after four seconds, and late a second after that.
    try heads(3..<4)
    store.pass(ms: 4_500)
    #expect(names(routes.text("/sessions.json")).count == 4 && client.requests().isEmpty)
    store.pass(ms: 501)
    #expect(names(routes.text("/sessions.json")).count == 5)
    #expect(client.requests().count == 2 + 1)
    // Without viewers, rounds are a minute apart.
    store.pass(ms: 700_000)
    try routes.refreshList()
    _ = client.requests()
    for _ in 0..<11 {
      store.pass(ms: 5_000)
      try routes.refreshList()
    }
    #expect(client.requests().isEmpty)
    _ = routes.text("/sessions.json?limit=1")
    #expect(client.requests().count == 2)
  }

  @Test func gapsOfALongSessionAreCounted() throws {
    try store.publish([store.batch(0..<1_000, everySeconds: 10), store.batch(2_000..<2_400, everySeconds: 4)])
    let (own, wanted) = (store.routes(try store.stored()), try store.routesOfDirectory())
    try own.refreshList()
    let texts = [own, wanted].map { $0.text("/sessions.json").replacing(/"revision":"[^"]*"/, with: "") }
    #expect(texts[0] == texts[1] && texts[0].contains("walk"))
  }

  @Test func searchOpensAFewSessionsAndSaysWhatItLeftOut() throws {
    var batches: [String] = []
    for number in 0..<12 {
      let path = try store.scratch.directory("s\(number)")
      try FileManager.default.copyItem(
        atPath: Fixture("gap").path + "/0000.jpg", toPath: "\(path)/\(LongSession.startMs + Int64(number)).jpg")
      batches.append(path)
    }
    try store.publish(batches)
    let routes = store.routes(try store.stored())
    try routes.refreshList()
    _ = client.requests()
    #expect(routes.text("/search.json?text=order").contains(#""sessionsNotSearched":4"#))
    #expect(client.requests().count <= 8 * 4)
    #expect(routes.text("/search.json?text=order").contains(#""sessionsNotSearched":0"#))
    _ = client.requests()
    #expect(routes.text("/search.json?text=order").contains(#""complete":true"#))
    #expect(client.requests().isEmpty)
  }
}
