import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// Retention removes whole packs of a session that goes on: what is left equals a directory's.
@Suite struct PackedRetentionTests {
  private static let ageMs: Int64 = 45_000

  private let package: GrowingPackage
  private let directory: SessionDirectory

  init() throws {
    package = try GrowingPackage()
    directory = SessionDirectory(output: package.output, session: try package.session)
  }

  private var objects: MemoryObjects { package.objects }

  private func store() throws -> ObjectStore { try package.store(nil, [], isWindow: true, layout: .packed) }

  private func views() -> SessionViews {
    SessionViews([], isWindow: true, clock: { [package] in package.nowMs }, wallClock: { [package] in package.unixMs })
  }

  /// Publishes batches of ten seconds in both places.
  private func publish(_ seconds: Range<Int>, _ store: ObjectStore) throws {
    let (views, staging) = (views(), try package.staging())
    defer { staging.remove() }
    let directory = BatchEncoder(BatchEncoder.Options(), staging: staging, index: views)
    for second in stride(from: seconds.lowerBound, to: seconds.upperBound, by: 10) {
      let batch = try package.batch(second..<(second + 10))
      _ = try directory.publish(batch)
      _ = try package.encoder(store).publish(batch)
    }
    #expect(views.flushPending(staging, all: true).isEmpty && store.flushPending(all: true).isEmpty)
  }

  /// Removes in the store. Each pack was published at the end of its ten seconds.
  private func retain(_ store: ObjectStore, at second: Int) -> RetentionReport {
    for key in objects.keys {
      guard let startMs = SegmentName.start(ofPack: String(key.dropFirst("output/walk/".count))) else { continue }
      objects.age(key, seconds: second - Int(startMs - GrowingPackage.startMs) / 1_000 - 10)
    }
    return StoredRetention(RetentionLimits(ageMs: Self.ageMs), of: store).run()
  }

  /// Removes the same in the directory, whose manifests have the times of their segments' ends.
  private func retainDirectory(at second: Int) throws -> RetentionReport {
    try package.dateNewSegments()
    return RollingRetention(
      RetentionLimits(ageMs: Self.ageMs), output: package.output, views: views(),
      temporary: { package.output + "/.temporary" }
    ).run(nowMs: GrowingPackage.startMs + Int64(second) * 1_000)
  }

  private func files(_ path: String) throws -> [String: Data] {
    try FileManager.default.contentsOfDirectory(atPath: path).reduce(into: [:]) { files, name in
      guard !name.hasPrefix("."), name != SessionRetention.file else { return }
      files[name] = FileManager.default.contents(atPath: path + "/" + name)
    }
  }

  private func expectSame() throws {
    let sessions = StoredSessions(objects, name: "s3://test/")
    let copy = try StoredSession(
      package.session, of: sessions, in: package.scratch.directory("copy-\(UUID())"), part: .whole
    ) { _, _ in }
    try copy.writeIndex()
    try copy.fetchVideos(of: nil) { _, _ in }
    #expect(try files(copy.path) == files(directory.path))
    // No pack is left without a segment.
    let listed = Set(copy.entries.compactMap { $0.pack?.file })
    #expect(Set(objects.keys.filter { $0.contains("/pack-") }.map { String($0.dropFirst(12)) }) == listed)
    let report = try sessions.verify(
      package.session, in: package.scratch.directory("verified-\(UUID())"), copying: { _, _ in }, progress: { _, _ in })
    #expect(report.problems.isEmpty, "\(report.problems)")
  }

  @Test func oldPacksGo() throws {
    let store = try store()
    try publish(0..<80, store)
    #expect(retain(store, at: 54).removed.isEmpty)
    let report = retain(store, at: 76)
    #expect(report.failures.isEmpty && report.segments == 6, "\(report)")
    #expect(try retainDirectory(at: 76).removed == report.removed)
    try expectSame()
    try publish(80..<100, store)
    try expectSame()
    // `session.json` comes with the end, without the removed segments.
    #expect(objects["output/walk/session.json"] == nil)
    _ = try store.end(package.session, .request, ifQuietForMs: nil, cancellation: .never)
    let json = String(decoding: try #require(objects["output/walk/session.json"]), as: UTF8.self)
    #expect(json.contains("\"startMs\":\(GrowingPackage.startMs + 30_000)}"))
    let report2 = retain(store, at: 96)
    #expect(report2.failures.isEmpty && report2.segments == 4, "\(report2)")
    #expect(!String(decoding: objects["output/walk/session.json"] ?? [], as: UTF8.self).contains("pack-1767859542340"))
  }

  /// The limit falls into a pack, which goes as a whole. All objects of the session take no more then.
  @Test func limitOfBytesRemovesWholePacks() throws {
    let store = try store()
    try publish(0..<80, store)
    func size() -> Int { objects.keys.filter { $0.hasPrefix("output/") }.reduce(0) { $0 + (objects[$1]?.count ?? 0) } }
    let limit = size() * 3 / 5
    let report = StoredRetention(RetentionLimits(maximumBytes: limit), of: store).run()
    #expect(report.failures.isEmpty && report.segments > 4 && report.segments % 2 == 0, "\(report)")
    #expect(size() <= limit * 21 / 20)
    let again = StoredRetention(RetentionLimits(maximumBytes: limit), of: store).run()
    #expect(again.segments <= 2 && again.failures.isEmpty)
    let problems = try StoredSessions(objects, name: "s3://test/").verify(
      package.session, in: package.scratch.directory("room"), copying: { _, _ in }, progress: { _, _ in }
    ).problems
    #expect(problems.isEmpty, "\(problems)")
  }

  @Test func removalIsFinishedAfterAFailureAtAnyWrite() throws {
    try publish(0..<80, store())
    let before = Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, objects[$0]) })
    objects.fail(from: nil)
    #expect(try retain(store(), at: 76).segments == 6)
    let writes = objects.puts
    _ = try retainDirectory(at: 76)
    try expectSame()
    for write in 0..<writes {
      for key in objects.keys { objects[key] = nil }
      for (key, bytes) in before { objects[key] = bytes }
      objects.fail(from: write)
      #expect(try retain(store(), at: 76).failures.count == 1, "write \(write)")
      objects.fail(from: nil)
      #expect(try retain(store(), at: 76).failures.isEmpty, "write \(write)")
      try expectSame()
    }
  }

  @Test func idleSessionGoesAsAWhole() throws {
    let store = try store()
    try publish(0..<20, store)
    let id = try package.session
    #expect(retain(store, at: 100_000).ending == [id])
    let request = try #require(try store.takeEndRequest(of: id, unless: { _ in false }))
    _ = try store.end(id, .quiet, ifQuietForMs: nil, cancellation: .never)
    try store.removeEndRequest(request)
    #expect(retain(store, at: 100_000).removed.map(\.isWhole) == [true])
    #expect(objects.keys == ["index/walk/head.json"])
  }
}
