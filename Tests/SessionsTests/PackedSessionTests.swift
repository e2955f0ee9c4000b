import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import ISOMedia
@testable import JSON
@testable import SegmentEncoder
@testable import Sessions

/// Sessions whose batches are one object each: readers find what they find in a directory, byte for byte.
@Suite struct PackedSessionTests {
  private let scratch: ScratchDirectory
  private let objects = MemoryObjects()
  private let session: GeneratedSession

  init() throws {
    scratch = try ScratchDirectory()
    session = try GeneratedSession(seed: 7, in: scratch)
  }

  private func store(
    _ layout: StoreLayout = .packed, _ client: (any ObjectClient)? = nil, _ views: ViewKinds = []
  ) throws -> ObjectStore {
    ObjectStore(
      client ?? objects, name: "s3://test/",
      staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()), views, layout: layout)
  }

  private func encoder(_ store: ObjectStore, quality: Quality = .balanced) -> BatchEncoder {
    var options = BatchEncoder.Options()
    options.quality = quality
    return BatchEncoder(options, publishingTo: store, keyFrames: KeyFrameCache())
  }

  private func publish(_ batches: [String], to store: ObjectStore) throws {
    let encoder = encoder(store)
    for batch in batches { _ = try encoder.publish(batch) }
    if let failure = store.flushPending(all: true).first { throw failure.error }
  }

  /// Publishes batches in a directory.
  ///
  /// - Returns: the files of the session.
  private func directory(_ batches: [String], of name: String) throws -> [String: Data] {
    let output = scratch.path("output-\(UUID().uuidString)")
    let staging = try Staging(output: output, worker: WorkerID())
    let index = SessionViews()
    let encoder = BatchEncoder(BatchEncoder.Options(), staging: staging, index: index)
    for batch in batches { _ = try encoder.publish(batch) }
    #expect(index.flushPending(staging, all: true).isEmpty)
    staging.remove()
    return try files("\(output)/\(name)")
  }

  private func files(_ path: String) throws -> [String: Data] {
    try FileManager.default.contentsOfDirectory(atPath: path).reduce(into: [:]) { files, name in
      files[name] = FileManager.default.contents(atPath: path + "/" + name)
    }
  }

  private var sessions: StoredSessions { StoredSessions(objects, name: "s3://test/") }

  /// Returns the files of a copy of the stored session.
  private func copied(_ name: String) throws -> [String: Data] {
    let copy = try StoredSession(
      #require(SessionID(name)), of: sessions, in: scratch.directory("copy-\(UUID().uuidString)"), part: .whole
    ) { _, _ in }
    try copy.writeIndex()
    try copy.fetchVideos(of: nil) { _, _ in }
    return try files(copy.path)
  }

  private func verify(_ name: String) throws -> [Problem] {
    try sessions.verify(
      #require(SessionID(name)), in: scratch.directory("verified-\(UUID().uuidString)"), copying: { _, _ in },
      progress: { _, _ in }
    ).problems
  }

  private func key(_ name: String) -> String { "output/\(session.name)/\(name)" }

  /// Returns the segments of a pack.
  private func segments(in pack: String) throws -> [Pack.Placed] {
    let bytes = try #require(objects[pack])
    let startMs = try #require(SegmentName.start(ofPack: String(pack.split(separator: "/")[2])))
    return try Pack.segments(in: bytes, startMs: startMs, path: pack)
  }

  private var packs: [String] { objects.keys.filter { $0.contains("/pack-") } }

  // MARK: - Reading

  @Test(arguments: [3, 8, 11, 12]) func copyEqualsTheDirectoryOfTheSameBatches(seed: Int) throws {
    let session = try GeneratedSession(seed: seed, in: scratch)
    try publish(session.batches, to: store())
    #expect(try copied(session.name) == directory(session.batches, of: session.name))
    #expect(!objects.keys.contains { $0.contains("/segment-") || $0.hasPrefix("receipts/") })
    #expect(try verify(session.name).isEmpty)
    // A second run changes nothing.
    let (before, puts) = (objects.keys.map { objects[$0] }, objects.puts)
    let encoder = encoder(try store())
    for batch in session.batches { #expect(try encoder.publish(batch).duplicate) }
    #expect(objects.keys.map { objects[$0] } == before && objects.puts == puts)
  }

  /// A session may be continued with the other layout.
  @Test(arguments: [StoreLayout.plain, .packed]) func layoutsMixInASession(first: StoreLayout) throws {
    let other = first == .plain ? StoreLayout.packed : .plain
    for (index, batch) in session.batches.enumerated() {
      try publish([batch], to: store(index % 2 == 0 ? first : other))
    }
    #expect(try copied(session.name) == directory(session.batches, of: session.name))
    #expect(try verify(session.name).isEmpty)
    try end()
    #expect(try verify(session.name).isEmpty)
  }

  private func end() throws {
    let store = try store()
    let outcome = try store.end(
      #require(SessionID(session.name)), .request, ifQuietForMs: nil, cancellation: .never)
    guard case .ended = outcome else {
      Issue.record("\(outcome)")
      return
    }
  }

  /// `session.json` and `session.ffconcat` come with the end. Stock ffmpeg reads the packs.
  @Test func filmOfThePacksEqualsThatOfTheSegments() throws {
    try publish(session.batches, to: store())
    let names = [IndexText.jsonFile, IndexText.scriptFile]
    #expect(names.allSatisfy { objects[key($0)] == nil })
    try end()
    let folder = try scratch.directory("packs")
    for name in names + packs.map({ String($0.split(separator: "/")[2]) }) {
      try scratch.file("packs/\(name)", #require(objects[key(name)]))
    }
    let plain = try scratch.directory("plain")
    for (name, bytes) in try directory(session.batches, of: session.name) {
      try bytes.write(to: URL(fileURLWithPath: plain + "/" + name))
    }
    #expect(try shown(folder) == shown(plain))
    let json = try JSONParser.parse(#require(objects[key(IndexText.jsonFile)]))
    for segment in try #require(json.object?["segments"]?.array) {
      let place = try #require(segment.object?["pack"]?.object)
      #expect(packs.contains(key(try #require(place["file"]?.string))))
    }
  }

  /// Returns when each other picture comes on screen, as stock ffmpeg reads a script: ticks, and the digest of the picture.
  private func shown(_ folder: String) throws -> [String] {
    let hashes = try tool(
      "ffmpeg", "-v", "error", "-f", "concat", "-i", folder + "/session.ffconcat", "-map", "0:v", "-fps_mode",
      "passthrough", "-enc_time_base", "1:90000", "-f", "framehash", "-")
    var shown: [String] = []
    var last = ""
    for line in hashes.split(separator: "\n") where !line.hasPrefix("#") {
      let fields = line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      guard fields.count == 6, fields[5] != last else { continue }
      last = fields[5]
      shown.append("\(fields[2]) \(last)")
    }
    #expect(shown.count > 3)
    return shown
  }

  private func tool(_ program: String, _ arguments: String...) throws -> String {
    String(decoding: try Tool.output(program, arguments), as: UTF8.self)
  }

  /// Stock tools take a pack for a film with two tracks.
  @Test func packIsAFilmWithATimingTrack() throws {
    try publish([session.batches[0]], to: store())
    let pack = try #require(packs.first)
    let path = try scratch.file("pack.mp4", #require(objects[pack]))
    let streams = try tool(
      "ffprobe", "-v", "error", "-show_entries", "stream=codec_name,codec_type", "-of", "csv=p=0", path)
    #expect(streams == "h264,video\nmov_text,subtitle\n")
    let segments = try segments(in: pack)
    let times = try tool(
      "ffprobe", "-v", "error", "-select_streams", "s:0", "-show_entries", "packet=pts", "-of", "csv=p=0", path)
    var next = MediaTime.ticks(ms: PackPlace.clockMs(segments[0].place.startMs))
    let starts = segments.flatMap(\.segment.frames).map { frame in
      defer { next += MediaTime.ticks(ms: frame.holdMs) }
      return "\(next)"
    }
    #expect(times.split(separator: "\n").map(String.init) == starts)
  }

  @Test func damageIsNamed() throws {
    try publish(session.batches, to: store())
    let pack = try #require(packs.first)
    let good = try #require(objects[pack])
    let segment = try #require(try segments(in: pack).first)
    for place in [
      segment.place.fragment.upperBound - segment.place.fragment.count / 2, segment.place.manifest.lowerBound + 40,
    ] {
      var bad = good
      bad[place] ^= 1
      objects[pack] = bad
      #expect(try !verify(session.name).isEmpty)
      #expect(throws: BadSession.self) { try copied(session.name) }
    }
    objects[pack] = Array(good.prefix(good.count / 3))
    #expect(throws: BadSession.self) { try copied(session.name) }
    objects[pack] = nil
    #expect(throws: BadSession.self) { try copied(session.name) }
    #expect(try !verify(session.name).isEmpty)
    objects[pack] = good
    #expect(try verify(session.name).isEmpty)
  }

  // MARK: - Publishing

  /// Two writes: the pack, and the head.
  @Test func batchTakesFewRequests() throws {
    let counted = StoppingObjects(objects)
    let store = try store(.packed, counted)
    let encoder = encoder(store)
    for (index, batch) in session.batches.enumerated() {
      let (puts, requests, packs) = (objects.puts, counted.requests, packs.count)
      _ = try encoder.publish(batch)
      let writes = self.packs.count - packs + 1
      #expect(objects.puts - puts == writes)
      #expect(counted.requests - requests - writes <= (index == 0 ? 2 : 4), "\(index)")
    }
    #expect(store.flushPending(all: true).isEmpty)
  }

  @Test func publicationIsRetriedAfterAKillBeforeAnyWrite() throws {
    let batch = session.batches[0]
    let wanted = try directory([batch], of: session.name)
    try publish([batch], to: store())
    let writes = objects.puts
    for write in 0..<writes {
      for key in objects.keys { objects[key] = nil }
      objects.fail(from: write)
      #expect(throws: (any Error).self) { try publish([batch], to: store()) }
      objects.fail(from: nil)
      try publish([batch], to: store())
      #expect(try copied(session.name) == wanted)
      #expect(try verify(session.name).isEmpty)
    }
    for write in 0..<writes {
      for key in objects.keys { objects[key] = nil }
      objects.loseAnswer(of: write)
      try publish([batch], to: store())
      #expect(try copied(session.name) == wanted)
    }
  }

  @Test func packOfADeadWorkerIsAdoptedOrReplaced() throws {
    let batch = session.batches[0]
    _ = try encoder(store(), quality: .sharp).publish(batch)
    let sharp = packs.map { objects[$0] }
    // The worker died before it listed the batch.
    objects["index/\(session.name)/head.json"] = nil
    #expect(try !encoder(store()).publish(batch).duplicate)
    #expect(packs.map { objects[$0] } == sharp)
    #expect(try verify(session.name).isEmpty)
    // Another batch of the same start is waited for, until its worker must be dead.
    objects["index/\(session.name)/head.json"] = nil
    let first = try #require(packs.first)
    objects[first] = Array("other".utf8)
    #expect(throws: SegmentWriteConflict.self) { try encoder(store()).publish(batch) }
    for key in objects.keys { objects.age(key, seconds: ObjectStore.orphanTTL) }
    #expect(try !encoder(store()).publish(batch).duplicate)
    #expect(try copied(session.name) == directory([batch], of: session.name))
  }

  @Test func concurrentPublicationIsNotLost() throws {
    let others = Mutex(Array(session.batches.dropFirst()))
    let hurrying = encoder(try store())
    objects.before { [objects] key in
      guard key.hasSuffix("/head.json"), let next = others.withLock({ $0.popLast() }) else { return }
      objects.before(nil)
      #expect((try? hurrying.publish(next)) != nil)
    }
    try publish([session.batches[0]], to: store())
    for batch in others.withLock({ $0 }) { _ = try hurrying.publish(batch) }
    #expect(try copied(session.name) == directory(session.batches, of: session.name))
  }

  /// One object for each time without a gap and for each kind of picture.
  @Test func gapsAndSizesBeginAPack() throws {
    try publish(session.batches, to: store())
    let id = try #require(SessionID(session.name))
    let published = try #require(try sessions.session(id).published())
    let entries = try sessions.session(id).whole(published).entries
    for (entry, next) in zip(entries, entries.dropFirst()) where entry.pack?.startMs == next.pack?.startMs {
      #expect(entry.endMs == next.startMs && entry.gapAfterMs == 0 && entry.batch == next.batch)
      #expect((entry.width + 1) / 2 == (next.width + 1) / 2 && (entry.height + 1) / 2 == (next.height + 1) / 2)
    }
    #expect(packs.count == Set(entries.compactMap { $0.pack?.startMs }).count)
  }
}
