import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// Heads that others have written claim sizes that no session has. They take no segment of another session, and do not end the process.
@Suite struct HostileHeadTests {
  private static let most = 1 << 42
  /// The requests for the heads of two sessions.
  private static let listing = 4

  private let package: GrowingPackage

  init() throws {
    package = try GrowingPackage()
    try publish(0..<30)
  }

  private var objects: MemoryObjects { package.objects }

  private func publish(_ seconds: Range<Int>) throws {
    let store = try package.store(nil, .hls, isWindow: true)
    _ = try package.encoder(store).publish(package.batch(seconds))
    #expect(store.flushPending(all: true).isEmpty)
  }

  private func retain(room: Int, _ client: (any ObjectClient)? = nil, days: Int = 0) throws -> RetentionReport {
    StoredRetention(RetentionLimits(maximumBytes: room), of: try package.store(client, .hls, isWindow: true))
      .run(nowMs: WallClock.nowMs + Int64(days) * 86_400_000)
  }

  /// The head of a session like the one that is there, with a change.
  private func head(_ session: String = "bad", _ change: (String) -> String) throws -> [UInt8] {
    let head = String(decoding: try #require(objects["index/walk/head.json"]), as: UTF8.self)
    let changed = change(head.replacing("\"walk\"", with: "\"\(session)\""))
    #expect(changed != head)
    return Array(changed.utf8)
  }

  private func retention(removed: Int, at startMs: Int64 = GrowingPackage.startMs) -> String {
    """
    "retention":{"format":"session-retention/1","session":"bad","startMs":\(startMs),"originMs":0,\
    "removedSegments":\(removed),"removing":false},"session"
    """
  }

  private var claims: [String: (String) -> String] {
    [
      "bytes": { $0.replacing(/"bytes":\d+/, with: "\"bytes\":\(Self.most)") },
      "segments": { $0.replacing(/"segments":\d+/, with: "\"segments\":\(Self.most)") },
      "both": {
        $0.replacing(/"bytes":\d+/, with: "\"bytes\":\(Self.most)")
          .replacing(/"segments":\d+/, with: "\"segments\":\(Self.most)")
      },
      "few bytes": { $0.replacing(/"bytes":\d+/, with: "\"bytes\":1") },
      // As many segments as its pages can list, and more bytes than those can have.
      "pages": { head in
        let pages = (0..<100).map { String(format: "\"%013d-0123456789abcdef.json\"", $0) }
        return head.replacing("\"pages\":[]", with: "\"pages\":[\(pages.joined(separator: ","))]")
          .replacing(/"segments":\d+/, with: "\"segments\":6000")
          .replacing(/"bytes":\d+/, with: "\"bytes\":\(Self.most)")
      },
    ]
  }

  @Test func claimsOfAHeadTakeNothingOfOthers() throws {
    let room = objects.keys.reduce(0) { $0 + (objects[$1]?.count ?? 0) } * 3
    for (name, change) in claims {
      objects["index/bad/head.json"] = try head { change($0) }
      // Its objects could give a rate of any size.
      let fragment = "output/bad/hls/segment-\(GrowingPackage.startMs)-01234567.m4s"
      objects[fragment] = [UInt8](repeating: 1, count: 1 << 20)
      let before = objects.keys
      for days in [0, 2] {
        let report = try retain(room: room, days: days)
        #expect(report.segments == 0 && report.ending.isEmpty && objects.keys == before, "\(name): \(report)")
        let told = report.failures.map { "\($0)" }
        #expect(told.count == 1 && told[0].contains("s3://test/index/bad/head.json"), "\(name): \(told)")
      }
      // The others keep their limit.
      let own = try retain(room: 1)
      #expect(own.removed.map(\.session.description) == ["walk"] && own.failures.count == 1, "\(name): \(own)")
      for key in objects.keys { objects[key] = nil }
      try publish(0..<30)
    }
  }

  /// A head says that another pass has removed more segments than the session had. Others still lose what is too much.
  @Test func removedSegmentsThatAHeadClaimsAreBounded() throws {
    let claims = [0, 1, 1 << 44]
    let heads = try claims.map { removed in
      try head { $0.replacing("\"session\"", with: retention(removed: removed)) }
    }
    try publish(30..<90)
    let room = objects.keys.reduce(0) { $0 + (objects[$1]?.count ?? 0) } / 3
    for head in heads {
      objects["index/bad/head.json"] = head
      // It changes between the list of the index, with both heads and the end, and the look at its segments.
      let client = StoppingObjects(objects) { [objects, worst = heads[2]] request in
        if request == Self.listing { objects["index/bad/head.json"] = worst }
      }
      let report = try retain(room: room, client)
      let own = report.removed.first { $0.session.description == "walk" }?.segments ?? 0
      #expect((4..<18).contains(own), "\(report)")
      for key in objects.keys { objects[key] = nil }
      try publish(0..<90)
    }
  }

  @Test func sumsOfSizesAreBounded() {
    var sizes = SessionBytes()
    (sizes.videos, sizes.segments, sizes.live) = (1, 1, 1 << 57)
    (sizes.described, sizes.shared) = (1 << 57, 1 << 57)
    let large = sizes.scaled(toVideos: Self.most, segments: Self.most)
    #expect(large.live == SessionBytes.maximum && large.described == SessionBytes.maximum && large.lasting > 0)
    #expect(large.ofSegment(video: Self.most) > 0)
    var sum = SessionBytes()
    for _ in 0..<10 { sum += large }
    #expect(sum.lasting > 0 && sum.videos == 10 * Self.most && sum.live == SessionBytes.maximum)
  }
}
