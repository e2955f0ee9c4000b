import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// The live playlist of a session in packs: ranges of bytes, and nothing that is stored twice.
@Suite struct PackedPlaylistTests {
  private static let playlist = "output/walk/hls/session.m3u8"

  private let package: GrowingPackage

  init() throws { package = try GrowingPackage() }

  private var objects: MemoryObjects { package.objects }

  private func store(_ client: (any ObjectClient)? = nil, isWindow: Bool = false) throws -> ObjectStore {
    try package.store(client, isWindow: isWindow, layout: .packed)
  }

  private func text() throws -> String {
    String(decoding: try #require(objects[Self.playlist]), as: UTF8.self)
  }

  private func lines(_ prefix: String) throws -> [String] {
    try text().split(separator: "\n").filter { $0.hasPrefix(prefix) }.map(String.init)
  }

  /// The milliseconds of all entries.
  private func lengths() throws -> [Int] { try lines("#EXTINF:").compactMap { Int($0.filter(\.isNumber)) } }

  private func end(_ store: ObjectStore) throws {
    let outcome = try store.end(package.session, .request, ifQuietForMs: nil, cancellation: .never)
    guard case .ended = outcome else { throw Tool.Failure("\(outcome)") }
  }

  /// Returns a directory with the objects of the session.
  private func copied() throws -> String {
    let folder = try package.scratch.directory("copy-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder + "/hls", withIntermediateDirectories: true)
    for key in objects.keys where key.hasPrefix("output/walk/") {
      let path = folder + "/" + key.dropFirst("output/walk/".count)
      try Data(objects[key] ?? []).write(to: URL(fileURLWithPath: path))
    }
    return folder
  }

  private func faults(isWindow: Bool = false) throws -> [String] {
    try Conformance.faults(ofPlaylistsIn: copied() + "/hls", isWindow: isWindow)
  }

  /// Writes a batch of a recorder that captures when something changes.
  private func changes(
    _ seconds: [Int], until end: Int, lateMs: Int64 = 0, of picture: String = "gap/0000"
  ) throws -> String {
    let path = try package.scratch.directory("walk@\(UUID().uuidString)")
    let source = Fixture(String(picture.split(separator: "/")[0])).path
    var frames: [String] = []
    for second in seconds {
      let name = "\(second).jpg"
      try FileManager.default.copyItem(
        atPath: "\(source)/\(picture.split(separator: "/")[1]).jpg", toPath: "\(path)/\(name)")
      frames.append(#"{"file":"\#(name)","timeMs":\#(GrowingPackage.startMs + lateMs + Int64(second) * 1_000)}"#)
    }
    let json = """
      {"version":1,"session":"walk","intervalMs":1000,"endMs":\(GrowingPackage.startMs + lateMs + Int64(end) * 1_000),\
      "capture":"onChange","frames":[\(frames.joined(separator: ","))]}
      """
    try Data(json.utf8).write(to: URL(fileURLWithPath: path + "/batch.json"))
    return path
  }

  private func publish(_ batch: String, _ store: ObjectStore) throws {
    _ = try package.encoder(store).publish(batch)
    #expect(store.flushPending(all: true).isEmpty)
  }

  // MARK: - Entries

  @Test func entriesAreRangesOfPacks() throws {
    let store = try store()
    for first in [0, 20, 40] { try package.publish(first..<first + 20, store) }
    #expect(try faults() == [])
    #expect(package.storedFiles == [HLSPlaylist.file, HLSViews.multivariantFile])
    #expect(HLSPlaylist.files(in: Array(try text().utf8)).isEmpty)
    #expect(try lines("../pack-").count == 12 && lines("#EXT-X-MAP:").count == 1)
    #expect(try !text().contains("DISCONTINUITY"))
    try end(store)
    #expect(try faults() == [])
    #expect(package.storedFiles == [HLSPlaylist.file, HLSViews.multivariantFile, HLSViews.keyFramesFile])
    #expect(try text().hasSuffix("#EXT-X-ENDLIST\n") && lengths().reduce(0, +) == 60_000)
  }

  /// Stock ffmpeg shows the pictures of the packs at the instants of those of the plain layout. In some sessions a late batch of another
  /// size comes before others.
  @Test(arguments: [3, 7]) func stockReaderShowsTheSameAsInThePlainLayout(seed: Int) throws {
    let session = try GeneratedSession(seed: seed, in: package.scratch)
    var shown: [[String]] = []
    for layout in [StoreLayout.plain, .packed] {
      let objects = MemoryObjects()
      let store = try package.store(objects, layout: layout)
      for batch in session.batches { _ = try package.encoder(store).publish(batch) }
      _ = try store.end(#require(SessionID(session.name)), .request, ifQuietForMs: nil, cancellation: .never)
      let folder = try package.scratch.directory("\(layout)")
      try FileManager.default.createDirectory(atPath: folder + "/hls", withIntermediateDirectories: true)
      let prefix = "output/\(session.name)/"
      for key in objects.keys where key.hasPrefix(prefix) && !key.contains("/thumbnails/") {
        try Data(objects[key] ?? []).write(to: URL(fileURLWithPath: folder + "/" + key.dropFirst(prefix.count)))
      }
      let faults = try Conformance.faults(ofPlaylistsIn: folder + "/hls")
      #expect(faults == [], "\(layout): \(faults)")
      shown.append(try pictures(folder + "/hls/session.m3u8"))
    }
    let differing = zip(shown[0], shown[1]).filter { $0 != $1 }
    #expect(differing.isEmpty && shown[0].count == shown[1].count && shown[0].count > 3, "\(differing)")
  }

  /// Returns each other picture with the ticks since the first one.
  private func pictures(_ playlist: String) throws -> [String] {
    let hashes = try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-i", playlist, "-map", "0:v", "-fps_mode", "passthrough", "-enc_time_base", "1:90000", "-f",
        "framehash", "-",
      ])
    var (shown, last, start): ([String], String, Int?) = ([], "", nil)
    for line in String(decoding: hashes, as: UTF8.self).split(separator: "\n") where !line.hasPrefix("#") {
      let fields = line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      guard fields.count == 6, fields[5] != last, let ticks = Int(fields[2]) else { continue }
      (last, start) = (fields[5], start ?? ticks)
      shown.append("\(ticks - (start ?? 0)) \(last)")
    }
    return shown
  }

  /// A playlist grows at its end only, whichever worker adds to it.
  @Test func linesThatPlayersHaveReadStay() throws {
    var seen = ""
    for first in [0, 7, 12, 30] {
      try package.publish(first..<first + 5, store())
      let text = try text()
      #expect(text.hasPrefix(seen))
      seen = text
    }
    #expect(try lengths().reduce(0, +) == 35_000 && lines("../pack-").count == 4)
    #expect(try faults() == [])
  }

  @Test func otherSizeHasAnInitializationAndADiscontinuity() throws {
    let store = try store()
    try publish(changes([0, 1], until: 2), store)
    try publish(changes([2, 3], until: 4, of: "rotation/0003"), store)
    // The picture before it is held up to its instant, since players count from there anew.
    try publish(changes([4, 5], until: 6, lateMs: 200), store)
    try end(store)
    #expect(try faults() == [])
    #expect(try lines(HLSPlaylist.holdPrefix).count == 1 && lengths().reduce(0, +) == 6_200)
    let maps = try lines("#EXT-X-MAP:")
    #expect(Set(maps).count == maps.count && maps.count > 1)
    #expect(try lines("#EXT-X-DISCONTINUITY").count == maps.count - 1)
    // Behind another kind of picture, key frames carry their parameter sets.
    #expect(try lines("# fragment ").last?.contains("avc3.") == true)
    #expect(try pictures(copied() + "/hls/session.m3u8").count > 2)
  }

  /// Fragments of the plain layout count from the session's start.
  @Test(arguments: [StoreLayout.plain, .packed]) func layoutsMixWithADiscontinuity(first: StoreLayout) throws {
    for (index, layout) in [first, first == .plain ? .packed : .plain, first].enumerated() {
      try package.publish(5 * index..<5 * index + 5, package.store(layout: layout))
    }
    #expect(try lines("#EXT-X-DISCONTINUITY").count == 2)
    #expect(try lengths() == [5_000, 5_000, 5_000])
    let packs = try lines("../pack-").count
    #expect(packs == (first == .plain ? 1 : 2))
    #expect(try lines("segment-").count == 3 - packs)
    try end(store())
    #expect(try lengths() == [5_000, 5_000, 5_000])
    #expect(try pictures(copied() + "/hls/session.m3u8").count == 1)
  }

  // MARK: - Holds and gaps

  /// The picture stays until the next batch: only that has a fragment of its own.
  @Test func pictureThatIsHeldHasAFragmentOnTheTimelineOfPacks() throws {
    let store = try store()
    try publish(changes([0, 3], until: 5), store)
    try publish(changes([12, 14], until: 16), store)
    try end(store)
    #expect(try lengths().reduce(0, +) == 16_000)
    let held = package.storedFiles.filter { $0.hasPrefix(HLSPlaylist.holdPrefix) }
    #expect(try !held.isEmpty && Set(lines(HLSPlaylist.holdPrefix)) == held)
    #expect(package.storedFiles.allSatisfy { !$0.hasPrefix("init-") && !$0.hasPrefix("segment-") })
    #expect(try !text().contains("DISCONTINUITY") && lines("#EXT-X-MAP:").count == 1)
    #expect(try faults() == [])
    let packets = try Tool.output(
      "ffprobe",
      [
        "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pts", "-of", "csv=p=0",
        copied() + "/hls/session.m3u8",
      ])
    let times = String(decoding: packets, as: UTF8.self).split(separator: "\n").compactMap { Int($0) }
    let start = PackPlace.clockMs(GrowingPackage.startMs) * 90
    #expect(times.first == Int(start) && zip(times, times.dropFirst()).allSatisfy { $0 < $1 && $1 - $0 <= 90_000 })
  }

  @Test func gapIsListedAndItsFileIsWrittenOnce() throws {
    let counted = CountingObjects(objects)
    let store = try store(counted)
    for first in [0, 20, 40] { try package.publish(first..<first + 5, store) }
    #expect(try lines("#EXT-X-GAP").count > 2 && faults() == [])
    #expect(counted.keys(.put).count { $0.hasSuffix("/gap.m4s") } == 1)
  }

  /// A session may begin earlier than it seemed. No number of an entry names another one then.
  @Test func lateBatchIsListedInItsPlace() throws {
    let store = try store()
    try package.publish(20..<40, store)
    let before = HLSPlaylist.sequence(of: try #require(objects[Self.playlist]))
    try package.publish(0..<20, store)
    #expect(try faults() == [])
    let starts = (0..<8).map { GrowingPackage.startMs + 5_000 * Int64($0) }
    #expect(HLSPlaylist.starts(in: Array(try text().utf8)) == starts)
    #expect(HLSPlaylist.sequence(of: Array(try text().utf8)).media == before.media + 4)
    #expect(!objects.keys.contains { $0.hasPrefix("superseded/") })
  }

  // MARK: - Requests

  /// The pack, the head and the playlist.
  @Test func batchOfFourSegmentsTakesThreeWritesAndTwoReads() throws {
    let counted = CountingObjects(objects)
    let store = try store(counted)
    let encoder = package.encoder(store)
    for number in 0..<4 {
      let batch = try package.batch(20 * number..<20 * number + 20)
      // Besides, a worker tries once a minute whether the store keeps its conditions.
      if number > 0 { counted.reset() }
      _ = try encoder.publish(batch)
      guard number > 0 else { continue }
      let writes = counted.keys(.put)
      #expect(
        writes.sorted() == [
          "index/walk/head.json", Self.playlist,
          "output/walk/\(SegmentName.pack(GrowingPackage.startMs + 20_000 * Int64(number)))",
        ])
      let kinds: [CountingObjects.Kind] = [.get, .head, .delete, .list]
      #expect(kinds.map { counted.keys($0).count }[0] <= 2, "\(counted.keys(.get))")
      #expect(kinds.map { counted.keys($0).count }[1...].reduce(0, +) <= 1, "\(kinds.map(counted.keys))")
    }
    #expect(try lines("../pack-").count == 15)
    // Another worker has to read what it did not publish.
    let other = CountingObjects(objects)
    let next = package.encoder(try self.store(other))
    let batch = try package.batch(80..<100)
    _ = try next.publish(batch)
    #expect(other.keys(.get).count { $0.contains("/pack-") } <= 2)
    #expect(try lines("../pack-").count == 19)
  }

  /// Players of a growing session need the codecs and the sizes.
  @Test func multivariantPlaylistIsWrittenWhenItsPicturesChange() throws {
    let counted = CountingObjects(objects)
    let store = try store(counted)
    let name = "/" + HLSViews.multivariantFile
    for second in [0, 2, 4] { try publish(changes([second, second + 1], until: second + 2), store) }
    #expect(counted.keys(.put).count { $0.hasSuffix(name) } == 1)
    try publish(changes([6, 7], until: 8, of: "rotation/0003"), store)
    #expect(counted.keys(.put).count { $0.hasSuffix(name) } == 2)
    #expect(try faults() == [])
  }

  // MARK: - Other workers, crashes and removal

  @Test func workerThatDiesAtAnyRequestLeavesAPlaylistOfWholePacks() throws {
    try package.publish(0..<10, store())
    let next = try package.batch(10..<20)
    let start = objects.keys.map { ($0, objects[$0]) }
    var (requests, isDone) = (0, false)
    while !isDone {
      for key in objects.keys { objects[key] = nil }
      for (key, bytes) in start { objects[key] = bytes }
      let dying = try store(StoppingObjects(objects, after: requests))
      isDone = (try? package.encoder(dying).publish(next)) != nil && dying.flushPending(all: true).isEmpty
      #expect(try faults() == [], "\(requests) requests")
      try publish(next, store())
      #expect(try lengths() == [5_000, 5_000, 5_000, 5_000] && faults() == [], "\(requests) requests")
      requests += 1
    }
    #expect(requests > 5)
  }

  /// Another worker publishes between the head and the playlist of this one.
  @Test(arguments: 0..<12) func batchOfAnotherWorkerIsNotLost(request: Int) throws {
    try package.publish(0..<10, store())
    let (own, other) = (try package.batch(10..<20), try package.batch(20..<30))
    let hurrying = package.encoder(try store())
    let client = StoppingObjects(objects) { number in
      if number == request { #expect((try? hurrying.publish(other)) != nil) }
    }
    let slow = try store(client)
    try publish(own, slow)
    try publish(other, try store())
    #expect(HLSPlaylist.starts(in: Array(try text().utf8)).count == 6)
    #expect(try lengths().reduce(0, +) == 30_000 && faults() == [])
  }

  /// The map names the first pack that is left.
  @Test func windowSlidesOverPacks() throws {
    let store = try store(isWindow: true)
    for first in stride(from: 0, to: 60, by: 10) { try package.publish(first..<first + 10, store) }
    for key in objects.keys {
      guard let startMs = SegmentName.start(ofPack: String(key.dropFirst("output/walk/".count))) else { continue }
      objects.age(key, seconds: 60 - Int(startMs - GrowingPackage.startMs) / 1_000 - 10)
    }
    let report = StoredRetention(RetentionLimits(ageMs: 25_000), of: store).run()
    #expect(report.failures.isEmpty && report.segments == 6)
    let first = "../" + SegmentName.pack(GrowingPackage.startMs + 30_000)
    #expect(try lines("../pack-").first == first && lines("#EXT-X-MAP:").allSatisfy { $0.contains("\"\(first)\"") })
    #expect(try lines("#EXT-X-MEDIA-SEQUENCE:") == ["#EXT-X-MEDIA-SEQUENCE:6"] && faults(isWindow: true) == [])
    let names = try Set(lines("../pack-").map { "output/walk/" + $0.dropFirst(3) })
    #expect(names.isSubset(of: Set(objects.keys)) && !objects.keys.contains { $0.hasPrefix("superseded/") })
    // It goes on, and ends.
    try package.publish(60..<70, store)
    #expect(try lines("#EXT-X-MAP:").count == 1 && lines("../pack-").count == 8 && faults(isWindow: true) == [])
    try end(store)
    #expect(try text().hasSuffix("#EXT-X-ENDLIST\n") && faults(isWindow: true) == [])
  }

  @Test func damagedFragmentIsAGap() throws {
    try package.publish(0..<10, package.store(nil, [], layout: .packed))
    let key = "output/walk/" + SegmentName.pack(GrowingPackage.startMs)
    var bytes = try #require(objects[key])
    let place = try #require(
      try Pack.segments(in: bytes, startMs: GrowingPackage.startMs, path: key).first?.place.fragment)
    bytes[place.lowerBound + 5] ^= 1
    objects[key] = bytes
    try package.publish(10..<20, store())
    #expect(try lines("../pack-").count == 3 && lines("#EXT-X-GAP").count == 1)
  }
}
