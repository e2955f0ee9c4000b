import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import ISOMedia
@testable import SegmentEncoder
@testable import Sessions

/// Batches of a real recorder meet some milliseconds early or late. In a pack, each fragment lasts until the next one begins, and tells how
/// the segment's own file ends.
@Suite struct PackSeamTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Writes batches of four pictures of a second each.
  ///
  /// - Parameters:
  ///   - seams: how much later than the end of the one before each further batch begins, in milliseconds.
  ///   - endsOpen: whether the last picture of each batch stays for two minutes or until the next batch.
  private func batches(_ seams: [Int64], endsOpen: Bool = false) throws -> [String] {
    var start = LongSession.startMs
    return try ([0] + seams).enumerated().map { index, seam in
      start += seam
      let path = try scratch.directory("walk@\(index)")
      var frames: [String] = []
      for number in 0..<4 {
        let name = "\(number).jpg"
        try FileManager.default.copyItem(
          atPath: Fixture("gap").path + "/000\(number % 2).jpg", toPath: "\(path)/\(name)")
        frames.append(#"{"file": "\#(name)", "timeMs": \#(start + Int64(number) * 1_000)}"#)
      }
      start += 4_000
      let open = endsOpen ? #""capture": "onChange", "endIsOpen": true, "# : ""
      let text = """
        {"version": 1, "session": "walk", \(open)"intervalMs": 1000,
        "endMs": \(endsOpen ? start + 117_000 : start), "frames": [\(frames.joined(separator: ", "))]}
        """
      try Data(text.utf8).write(to: URL(fileURLWithPath: path + "/batch.json"))
      return path
    }
  }

  private func publish(_ batches: [String], segmentMs: Int64 = 5_000) throws -> SessionDirectory {
    let staging = try Staging(output: scratch.path("output"), worker: WorkerID())
    var options = BatchEncoder.Options()
    options.segmentMs = segmentMs
    let encoder = BatchEncoder(options, staging: staging, index: SessionViews())
    for batch in batches { _ = try encoder.publish(batch) }
    staging.remove()
    return SessionDirectory(output: scratch.path("output"), session: try #require(SessionID("walk")))
  }

  private struct Fragment {
    let segment: PublishedSegment
    let bytes: [UInt8]
    let content: MP4PackFragment
  }

  private func packs(of session: SessionDirectory) throws -> [[Fragment]] {
    let sources = try session.publishedStarts().map(session.source)
    return try Pack.all(of: sources, in: scratch.directory("packs"), behind: nil, .never).map { pack in
      let bytes = try #require(try DurableFile.contents(of: pack.path, limit: .max))
      return try pack.segments.map { segment, place, _ in
        let fragment = Array(bytes[place.fragment])
        return Fragment(segment: segment, bytes: fragment, content: try MP4PackFragment(reading: fragment))
      }
    }
  }

  private func expectReversible(_ fragments: [Fragment], of session: SessionDirectory) throws {
    for fragment in fragments {
      let file = try DurableFile.contents(of: "\(session.path)/\(fragment.segment.file)", limit: .max)
      #expect(try PackedSegment.file(of: fragment.bytes) == file, "\(fragment.segment.file)")
    }
  }

  @Test func fragmentsLastUntilTheNextOne() throws {
    let session = try publish(batches([-40, 26, 0, -499, 499, 1]))
    let packs = try packs(of: session)
    try #require(packs.count == 1 && packs[0].count == 7)
    try expectReversible(packs[0], of: session)
    for (fragment, next) in zip(packs[0], packs[0].dropFirst()) {
      let length = MediaTime.ticks(ms: next.segment.startMs - fragment.segment.startMs)
      #expect(fragment.content.video.reduce(0) { $0 + $1.duration } == length)
      #expect(fragment.content.timing.reduce(0) { $0 + $1.duration } == length)
      #expect((fragment.content.ownEnd == nil) == (fragment.segment.endMs == next.segment.startMs))
      #expect(fragment.content.video.allSatisfy { $0.duration <= MediaTime.ticks(ms: 1_000) })
    }
    #expect(packs[0][6].content.ownEnd == nil)
  }

  /// The next batch may begin anywhere in the hold, whose repeats end there.
  @Test func openEndsAreCutShort() throws {
    let session = try publish(batches([0, 3_400, 0], endsOpen: true), segmentMs: 600_000)
    let packs = try packs(of: session)
    try #require(packs.count == 1)
    try expectReversible(packs[0], of: session)
    let ends = packs[0].compactMap { $0.content.ownEnd?.video.count }
    #expect(ends.count == 3, "\(ends)")
  }

  /// A pause between batches is a gap. A hold of more than half a second is neither a seam nor a gap: a playlist lists it by itself.
  @Test(arguments: [500, 1_700]) func pauseSplitsPacks(pauseMs: Int64) throws {
    let session = try publish(batches([pauseMs]))
    let packs = try packs(of: session)
    #expect(packs.map(\.count) == [1, 1])
    for pack in packs { try expectReversible(pack, of: session) }
  }

  /// Stock ffprobe finds each picture at its instant. It takes the frame rate for all durations.
  @Test func stockReaderFindsEachPictureAtItsInstant() throws {
    let session = try publish(batches([-40, 26, -499, 499]))
    let segments = try session.publishedStarts().map { try session.segment($0) }
    let pack = try #require(
      try Pack.all(of: segments.map { try session.source($0.startMs) }, in: scratch.path, behind: nil, .never).first)
    let shown = try Probe(pack.path).packets(of: 0).map(\.pts)
    let captured = segments.flatMap(\.frames).map { MediaTime.ticks(ms: PackPlace.clockMs($0.timeMs)) }
    #expect(captured.count == 20 && Set(captured).isSubset(of: shown))
    #expect(zip(shown, shown.dropFirst()).allSatisfy { $0 < $1 && $1 - $0 <= MediaTime.ticks(ms: 1_000) })
  }
}
