import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// First segments of a stored session that goes on are removed, as in a directory.
@Suite struct StoredRetentionTests {
  private static let all: ViewKinds = [.hls, .thumbnails, .sentry]
  private static let ageMs: Int64 = 47_000

  private let package: GrowingPackage
  private let directory: SessionDirectory

  init() throws {
    package = try GrowingPackage()
    directory = SessionDirectory(output: package.output, session: try package.session)
  }

  private var objects: MemoryObjects { package.objects }

  private func store() throws -> ObjectStore { try package.store(nil, Self.all, isWindow: true) }

  private func views() -> SessionViews {
    SessionViews(
      Self.all, isWindow: true, clock: { [package] in package.nowMs }, wallClock: { [package] in package.unixMs })
  }

  private func start(_ second: Int) -> Int64 { GrowingPackage.startMs + Int64(second) * 1_000 }

  /// Publishes batches in both places.
  private func publish(_ seconds: Range<Int>, _ store: ObjectStore, every step: Int = 10) throws {
    let (views, staging) = (views(), try package.staging())
    defer { staging.remove() }
    let directory = BatchEncoder(BatchEncoder.Options(), staging: staging, index: views)
    for second in stride(from: seconds.lowerBound, to: seconds.upperBound, by: step) {
      let batch = try package.batch(second..<(second + step))
      _ = try directory.publish(batch)
      _ = try package.encoder(store).publish(batch)
    }
    #expect(views.flushPending(staging, all: true).isEmpty && store.flushPending(all: true).isEmpty)
  }

  /// Sets the ages of the manifests in the store as if each segment had been published at its end.
  private func age(at second: Int) {
    for key in objects.keys {
      let name = String(key.dropFirst("output/walk/".count))
      guard let startMs = SegmentName.start(ofManifest: name) else { continue }
      objects.age(key, seconds: second - Int(startMs - GrowingPackage.startMs) / 1_000 - 5)
    }
  }

  private func retain(_ store: ObjectStore, at second: Int) -> RetentionReport {
    age(at: second)
    return StoredRetention(RetentionLimits(ageMs: Self.ageMs), of: store).run()
  }

  /// Removes in the directory what is removed in the store.
  private func retainDirectory(at second: Int) throws -> RetentionReport {
    try package.dateNewSegments()
    return RollingRetention(
      RetentionLimits(ageMs: Self.ageMs), output: package.output, views: views(),
      temporary: { package.output + "/.temporary" }
    ).run(nowMs: start(second))
  }

  @Test func oldSegmentsGoAsInADirectory() throws {
    let store = try store()
    try publish(0..<80, store)
    #expect(retain(store, at: 51).removed.isEmpty)
    let report = retain(store, at: 80)
    let wanted = try retainDirectory(at: 80)
    #expect(report.failures.isEmpty && report.removed == wanted.removed && report.segments == 6, "\(report.failures)")
    try package.expectSame()
    #expect(try store.session(package.session).published()?.retention?.isRemoving == false)
    #expect(objects.keys.allSatisfy { !$0.hasPrefix("behind/") })
    // The session goes on, and its numbers, too.
    try publish(80..<100, store)
    try package.expectSame()
    // Nothing comes back.
    let old = try package.batch(0..<10)
    #expect(throws: BatchTooOld.self) { _ = try store.prepare(reader(old), cancellation: .never) }
    _ = retain(store, at: 100)
    _ = try retainDirectory(at: 100)
    try package.expectSame()
    // The files of the playlists before go when players had their time.
    package.pass(ms: 301_000)
    #expect(store.flushPending(all: true).isEmpty)
    #expect(try package.storedFiles == package.storedWanted())
  }

  /// The index of a long session has pages: the removal ends within one, then within the head.
  @Test func longSessionLosesPagesOfItsIndex() throws {
    let store = try store()
    try publish(0..<720, store, every: 360)
    #expect(try store.session(package.session).published()?.pages.count == 1)
    for second in [400, 720] {
      let report = retain(store, at: second)
      #expect(report.failures.isEmpty, "\(report.failures)")
      #expect(try report.removed == retainDirectory(at: second).removed)
      #expect(report.segments > 60)
      try package.expectSame()
    }
    let published = try #require(try store.session(package.session).published())
    #expect(published.pages.isEmpty && published.retention?.segments == 134)
    try publish(720..<730, store)
    try package.expectSame()
  }

  private func reader(_ batch: String) throws -> BatchReader {
    try #require(try package.encoder(store()).read(batch).batch.readers.first)
  }

  /// A batch of which only the first segments are removed is published before, and can be finished.
  @Test func batchAcrossTheBeginningIsTakenAsInADirectory() throws {
    let store = try store()
    try publish(0..<80, store)
    _ = retain(store, at: 80)
    _ = try retainDirectory(at: 80)
    let batch = try package.batch(20..<50)
    let staging = try package.staging()
    defer { staging.remove() }
    // It conflicts with what is there, in both places alike.
    let errors = [
      #expect(throws: (any Error).self) { _ = try package.encoder(store).publish(batch) },
      #expect(throws: (any Error).self) {
        _ = try BatchEncoder(BatchEncoder.Options(), staging: staging, index: views()).publish(batch)
      },
    ]
    #expect("\(try #require(errors[0]))" == "\(try #require(errors[1]))")
    try package.expectSame()
  }

  @Test func removalIsFinishedAfterAFailureAtAnyWrite() throws {
    let store = try store()
    try publish(0..<80, store)
    let before = Dictionary(uniqueKeysWithValues: objects.keys.map { ($0, objects[$0]) })
    objects.fail(from: nil)
    #expect(retain(store, at: 80).segments == 6)
    let writes = objects.puts
    _ = try retainDirectory(at: 80)
    try package.expectSame()
    #expect(writes > 5)
    for write in 0..<writes {
      for key in objects.keys { objects[key] = nil }
      for (key, bytes) in before { objects[key] = bytes }
      let store = try self.store()
      objects.fail(from: write)
      #expect(retain(store, at: 80).failures.count == 1, "write \(write)")
      objects.fail(from: nil)
      #expect(retain(store, at: 80).failures.isEmpty, "write \(write)")
      try package.expectSame()
    }
  }

  /// A worker publishes in the session before each kind of write of the removal.
  @Test(arguments: ["/head.json", "/session.json", "/session.m3u8", "/thumbnails.vtt", "behind/walk"])
  func publicationMeanwhileIsNotLost(before write: String) throws {
    let store = try store()
    try publish(0..<80, store)
    _ = try retainDirectory(at: 80)
    let worker = try self.store()
    let others = Mutex([80..<90, 90..<100])
    objects.before { [self] key in
      guard key.hasSuffix(write), let next = others.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
      objects.before(nil)
      #expect(throws: Never.self) { try publish(next, worker) }
    }
    #expect(retain(store, at: 80).failures.isEmpty)
    objects.before(nil)
    for next in others.withLock({ $0 }) { try publish(next, worker) }
    #expect(worker.flushPending(all: true).isEmpty && store.flushPending(all: true).isEmpty)
    try package.expectSame()
  }

  /// Nothing was published in it for long. Its end is announced before it goes as a whole.
  @Test func sessionEndsBeforeItGoes() throws {
    let store = try store()
    try publish(0..<20, store)
    let id = try package.session
    #expect(retain(store, at: 100_000).ending == [id])
    #expect(retain(store, at: 100_000).ending == [id])
    let request = try #require(try store.takeEndRequest(of: id, unless: { _ in false }))
    guard case .ended = try store.end(id, .quiet, ifQuietForMs: nil, cancellation: .never) else {
      Issue.record("it goes on")
      return
    }
    try store.removeEndRequest(request)
    let report = retain(store, at: 100_000)
    #expect(report.failures.isEmpty && report.removed.map(\.isWhole) == [true], "\(report)")
    #expect(objects.keys == ["index/walk/head.json"])
    // It may come again: nobody has deleted it.
    try publish(0..<10, self.store())
    #expect(objects["output/walk/session.json"] != nil)
    _ = try store.session(id).published()
  }
}
