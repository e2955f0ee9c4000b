import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// A limit of bytes removes the same segments from a directory and from a store, the oldest of all sessions first. All that stays is
/// the same, byte for byte: videos, manifests, views, live playlists, thumbnails, words, labels and files of the end.
@Suite struct RoomInBothPlacesTests {
  private static let views: ViewKinds = [.hls, .thumbnails, .sentry]
  private static let names = ["first", "other", "walk"]

  private let package: GrowingPackage

  init() throws { package = try GrowingPackage() }

  private var objects: MemoryObjects { package.objects }

  private func id(_ name: String) throws -> SessionID { try #require(SessionID(name)) }

  private func store() throws -> ObjectStore { try package.store(nil, Self.views, isWindow: true) }

  private func directoryViews() -> SessionViews {
    SessionViews(
      Self.views, isWindow: true, clock: { [package] in package.nowMs }, wallClock: { [package] in package.unixMs })
  }

  private func withDirectory<R>(_ body: (DirectoryStore) throws -> R) throws -> R {
    let (views, staging) = (directoryViews(), try package.staging())
    defer { staging.remove() }
    let result = try body(DirectoryStore(staging: staging, index: views))
    #expect(views.flushPending(staging, all: true).isEmpty)
    return result
  }

  /// Publishes batches of ten seconds in both places.
  private func publish(_ seconds: Range<Int>, of session: String) throws {
    let store = try store()
    for second in stride(from: seconds.lowerBound, to: seconds.upperBound, by: 10) {
      let path = package.scratch.path("\(session)@\(UUID().uuidString)")
      try FileManager.default.moveItem(atPath: package.batch(second..<second + 10), toPath: path)
      _ = try package.encoder(store).publish(path)
      try withDirectory { directory in
        _ = try BatchEncoder(BatchEncoder.Options(), publishingTo: directory, keyFrames: KeyFrameCache()).publish(path)
      }
    }
    #expect(store.flushPending(all: true).isEmpty)
  }

  /// Adds labels, and a word for each segment.
  private func describe(_ session: String) throws {
    let directory = SessionDirectory(output: package.output, session: try id(session))
    var list = LabelList()
    for startMs in try directory.publishedStarts() {
      list.append(try #require(Label(timeMs: startMs + 100, kind: "step", text: "at \(startMs)")))
      let segment = try directory.segment(startMs)
      let word = VisibleWord(
        text: "Order", box: PictureRegion(x: 1, y: 2, width: 30, height: 10), confidence: 90,
        shownMs: startMs..<segment.endMs)
      let text = SegmentText(
        session: try id(session), startMs: startMs, endMs: segment.endMs, sha256: segment.sha256,
        engine: "tesseract 5", language: "eng", pictures: 1, unreadMs: [], leftOut: 0, words: [word])
      try DurableFile.create(directory.path + "/" + SegmentName.text(startMs), text.bytes)
      objects["output/\(session)/" + SegmentName.text(startMs)] = text.bytes
    }
    let addition = LabelAddition(list, to: try id(session), name: "labels")
    #expect(try store().add(addition, cancellation: .never).labels == list.labels.count)
    #expect(try withDirectory { try $0.add(addition, cancellation: .never).labels } == list.labels.count)
  }

  /// Ends a session in both places, announces that, and makes a file of it.
  private func end(_ session: String, bytes: Int) throws {
    let id = try id(session)
    func end(_ store: any WorkerStore) throws {
      guard case .ended = try store.end(id, .request, ifQuietForMs: nil, cancellation: .never) else {
        Issue.record("\(session) goes on")
        return
      }
      if let request = try store.takeEndRequest(of: id) { try store.removeEndRequest(request) }
      let files = try store.export(["film.mp4"], of: id, cancellation: .never) { _, _, target in
        try DurableFile.create(target, [UInt8](repeating: 1, count: bytes), isDurable: false)
        return true
      }
      #expect(files?.map(\.bytes) == [bytes])
    }
    let store = try store()
    try end(store)
    #expect(store.flushPending(all: true).isEmpty)
    try withDirectory(end)
  }

  /// The bytes of all objects of sessions.
  private var bytes: Int {
    objects.keys.filter { $0.hasPrefix("output/") }.reduce(0) { $0 + (objects[$1]?.count ?? 0) }
  }

  /// Removes segments of the store until there is room.
  private func retain(_ room: Int) throws -> Int {
    let retention = StoredRetention(RetentionLimits(maximumBytes: room), of: try store())
    var count = 0
    while true {
      let report = retention.run()
      #expect(report.failures.isEmpty && report.ending.isEmpty, "\(report)")
      guard report.segments > 0 else { return count }
      count += report.segments
    }
  }

  /// Removes the oldest segment of the directory, or the last one with its session.
  private func retainDirectory() throws -> Int {
    let sizes = OutputBytes(output: package.output)
    let all = try Self.names.reduce(0) { try $0 + (sizes.bytes(of: id($1))?.lasting ?? 0) }
    let report = RollingRetention(
      RetentionLimits(maximumBytes: all - 1), output: package.output, views: directoryViews(),
      temporary: { package.output + "/.temporary" }
    ).run(nowMs: WallClock.nowMs)
    #expect(report.failures.isEmpty && report.held.isEmpty && report.ending.isEmpty, "\(report)")
    return report.segments
  }

  /// They go with their session, and others lose nothing for them.
  @Test func filesOfTheEndCountInBothPlaces() throws {
    try publish(0..<10, of: "first")
    try publish(20..<50, of: "walk")
    let stored = StoredSessions(objects, name: "s3://test/")
    let (heads, sizes) = (StoredHeads(of: stored, countsGaps: false), StoredBytes(of: stored))
    func requireCounted() throws {
      try heads.readAll {}
      let sum = try sizes.bytes(of: heads.published, .never).values.reduce(0) { $0 + $1.lasting }
      #expect(sum > bytes * 19 / 20 && sum < bytes * 21 / 20, "\(sum) of \(bytes)")
    }
    try requireCounted()
    try end("first", bytes: 200_000)
    try requireCounted()
    // It came a moment after the look.
    objects["output/first/exports/late.gif"] = [UInt8](repeating: 1, count: 300_000)
    try requireCounted()
    objects["output/first/exports/late.gif"] = nil
    let before = bytes
    #expect(try retain(before - 150_000) == 2 && !objects.keys.contains { $0.hasPrefix("output/first/") })
    let directory = OutputBytes(output: package.output)
    let all = try ["first", "walk"].reduce(0) { try $0 + (directory.bytes(of: id($1))?.lasting ?? 0) }
    #expect(all > before)
    let report = RollingRetention(
      RetentionLimits(maximumBytes: all - 150_000), output: package.output, views: directoryViews(),
      temporary: { package.output + "/.temporary" }
    ).run(nowMs: WallClock.nowMs)
    #expect(try report.segments == 2 && report.removed.map(\.session) == [id("first")], "\(report)")
    for name in ["first", "walk"] { try package.expectSame(name) }
  }

  @Test func sameSegmentsGoAndTheSameBytesStay() throws {
    try publish(0..<30, of: "first")
    try publish(10..<70, of: "walk")
    try publish(40..<80, of: "other")
    for name in Self.names { try describe(name) }
    try end("first", bytes: 100_000)
    for name in Self.names { try package.expectSame(name) }
    let before = bytes
    var (removed, mostLeft) = (0, 26)
    for percent in [97, 80, 55, 30] {
      removed = try retain(before * percent / 100)
      #expect(removed > 0, "\(percent) %")
      mostLeft -= removed
      while removed > 0 {
        let count = try retainDirectory()
        try #require(count > 0)
        removed -= count
      }
      #expect(removed == 0)
      for name in Self.names { try package.expectSame(name) }
      // Fragments that no playlist names do not count. They go when players had their time.
      package.pass(ms: 301_000)
      #expect(try store().flushPending(all: true).isEmpty)
      try withDirectory { _ in }
      #expect(bytes <= before * percent / 95, "\(bytes) of \(before): \(percent) %")
      for name in Self.names { try package.expectSame(name) }
    }
    #expect(mostLeft > 2 && !objects.keys.contains { $0.hasPrefix("output/first/") })
    // The sessions go on in both places.
    try publish(80..<90, of: "other")
    for name in Self.names { try package.expectSame(name) }
  }
}
