import Encoding
import FileSystem
import Foundation
import FrameBatches
import SegmentEncoder
import Sessions
import Synchronization
import Testing

/// The live package of the session `walk` in a directory or an object store, under clocks that a test sets.
package final class GrowingPackage: Sendable {
  package static let startMs: Int64 = 1_767_859_512_340

  package let scratch: ScratchDirectory
  package let objects = MemoryObjects()
  private let clock = Mutex((monotonicMs: 1_000_000, unixMs: GrowingPackage.startMs))

  package init() throws { scratch = try ScratchDirectory() }

  package var output: String { scratch.path("output") }
  package var session: SessionID { get throws { try #require(SessionID("walk")) } }

  package var nowMs: Int { clock.withLock { $0.monotonicMs } }
  package var unixMs: Int64 { clock.withLock { $0.unixMs } }

  /// Lets time pass on both clocks.
  package func pass(ms: Int) {
    clock.withLock { $0 = ($0.monotonicMs + ms, $0.unixMs + Int64(ms)) }
  }

  /// Writes a batch with a frame each second.
  ///
  /// - Parameters:
  ///   - seconds: since ``startMs``.
  ///   - steps: labels: their milliseconds since ``startMs``, and their texts.
  package func batch(_ seconds: Range<Int>, steps: KeyValuePairs<Int, String> = [:]) throws -> String {
    let path = try scratch.directory("walk@\(UUID().uuidString)")
    for second in seconds {
      try FileManager.default.copyItem(
        atPath: Fixture("gap").path + "/0000.jpg", toPath: "\(path)/\(Self.startMs + Int64(second) * 1_000).jpg")
    }
    let lines = steps.map { #"{"timeMs":\#(Self.startMs + Int64($0.key)),"kind":"step","text":"\#($0.value)"}"# }
    if !lines.isEmpty {
      try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: path + "/labels.jsonl"))
    }
    return path
  }

  package func views() -> SessionViews {
    SessionViews(.hls, clock: { [self] in nowMs }, wallClock: { [self] in unixMs })
  }

  package func store(
    _ client: (any ObjectClient)? = nil, _ views: ViewKinds = .hls, isWindow: Bool = false,
    layout: StoreLayout = .plain
  ) throws -> ObjectStore {
    ObjectStore(
      client ?? objects, name: "s3://test/",
      staging: try Staging(scratch: scratch.path("own"), worker: WorkerID()), views, isWindow: isWindow, layout: layout,
      clock: { [self] in nowMs }, wallClock: { [self] in unixMs })
  }

  package func staging() throws -> Staging { try Staging(output: output, worker: WorkerID()) }

  /// Publishes in the directory, and lists all segments.
  package func publish(
    _ seconds: Range<Int>, steps: KeyValuePairs<Int, String> = [:], _ views: SessionViews
  ) throws {
    let staging = try staging()
    _ = try BatchEncoder(BatchEncoder.Options(), staging: staging, index: views)
      .publish(batch(seconds, steps: steps))
    #expect(views.flushPending(staging, all: true).isEmpty)
    staging.remove()
  }

  /// Publishes in the object store, and lists all segments.
  package func publish(
    _ seconds: Range<Int>, steps: KeyValuePairs<Int, String> = [:], _ store: ObjectStore
  ) throws {
    _ = try encoder(store).publish(batch(seconds, steps: steps))
    #expect(store.flushPending(all: true).isEmpty)
  }

  /// Sets the times of manifests as if each segment had been published at its end. Another thread may remove them meanwhile.
  package func date(_ segments: [PublishedSegment]) {
    for segment in segments {
      let time = timespec(tv_sec: Int(segment.endMs / 1_000), tv_nsec: Int(segment.endMs % 1_000) * 1_000_000)
      utimensat(AT_FDCWD, output + "/walk/" + SegmentName.manifest(segment.startMs), [time, time], 0)
    }
  }

  /// Like ``date(_:)``, for those that were published in the last minute.
  package func dateNewSegments() throws {
    let session = SessionDirectory(output: output, session: try session)
    let sinceMs = WallClock.nowMs - 60_000
    date(try session.publishedStarts().filter { try session.publishedMs($0) ?? 0 > sinceMs }.map(session.segment))
  }

  package func encoder(_ store: ObjectStore) -> BatchEncoder {
    BatchEncoder(BatchEncoder.Options(), publishingTo: store, keyFrames: KeyFrameCache())
  }

  /// Expects that readers of a session find the same in both places, and that the stored one is whole.
  package func expectSame(_ session: String = "walk") throws {
    let (path, prefix) = (output + "/" + session, "output/" + session + "/")
    let isThere = FileManager.default.fileExists(atPath: path)
    let names = try (isThere ? FileManager.default.subpathsOfDirectory(atPath: path) : []).filter { name in
      let hasBytes = DurableFile.isFile(path + "/" + name) && !name.hasPrefix(".")
      return hasBytes && name != SessionRetention.file && !name.hasSuffix(".m4s") && !name.contains("/init-")
    }
    let stored = objects.keys.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
    // The index of a store has the record of the end.
    let inHead = [SessionEnd.file]
    #expect(
      stored.filter { !$0.hasSuffix(".m4s") && !$0.contains("/init-") }
        == names.filter { !inHead.contains($0) }.sorted(),
      "\(session)")
    for name in names where !inHead.contains(name) {
      let bytes = try DurableFile.contents(of: path + "/" + name, limit: .max)
      #expect(objects[prefix + name] == bytes, "\(session)/\(name)")
    }
    for name in HLSPlaylist.files(in: objects[prefix + "hls/session.m3u8"] ?? []) {
      #expect(objects[prefix + "hls/" + name] != nil, "\(session)/\(name)")
    }
    guard isThere, let id = SessionID(session) else { return }
    let report = try StoredSessions(objects, name: "s3://test/").verify(
      id, in: scratch.directory("verified-\(UUID().uuidString)"), copying: { _, _ in }, progress: { _, _ in })
    #expect(report.problems.isEmpty, "\(report.problems)")
  }

  /// The files of `hls/` in the directory.
  package func files() throws -> Set<String> { Set(try TestSupport.names(in: output + "/walk/hls")) }

  /// The files of `hls/` in the object store.
  package var storedFiles: Set<String> {
    let folder = "output/walk/hls/"
    return Set(objects.keys.filter { $0.hasPrefix(folder) }.map { String($0.dropFirst(folder.count)) })
  }

  /// The playlists, and the files that the media playlist names.
  package func wanted(in playlist: [UInt8]?) throws -> Set<String> {
    let named = HLSPlaylist.files(in: try #require(playlist))
    return named.union([HLSPlaylist.file, HLSViews.keyFramesFile, HLSViews.multivariantFile])
  }

  package func wanted() throws -> Set<String> {
    try wanted(in: DurableFile.contents(of: output + "/walk/hls/session.m3u8", limit: .max))
  }

  package func storedWanted() throws -> Set<String> { try wanted(in: objects["output/walk/hls/session.m3u8"]) }
}
