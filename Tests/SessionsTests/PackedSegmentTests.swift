import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import FrameBatches
@testable import ISOMedia
@testable import SegmentEncoder
@testable import Sessions

/// A segment becomes a fragment, and its own file can be made of that again.
@Suite struct PackedSegmentTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// Publishes batches in a directory.
  private func publish(_ batches: [String], _ options: BatchEncoder.Options = BatchEncoder.Options()) throws -> String {
    let output = scratch.path("output")
    let staging = try Staging(output: output, worker: WorkerID())
    let encoder = BatchEncoder(options, staging: staging, index: SessionViews())
    for batch in batches { _ = try encoder.publish(batch) }
    staging.remove()
    return output
  }

  private func segments(_ output: String, _ session: String) throws -> [(PublishedSegment, [UInt8])] {
    let directory = SessionDirectory(output: output, session: try #require(SessionID(session)))
    return try directory.publishedStarts().map { start in
      let segment = try directory.segment(start)
      return (segment, try #require(try DurableFile.contents(of: "\(directory.path)/\(segment.file)", limit: .max)))
    }
  }

  private func expectReversible(_ segments: [(PublishedSegment, [UInt8])]) throws {
    #expect(!segments.isEmpty)
    for (segment, file) in segments {
      let (fragment, _) = try PackedSegment.fragment(of: segment, file)
      #expect(try PackedSegment.file(of: fragment.bytes(number: 7, start: 90)) == file, "\(segment.file)")
      // WebKitGTK waits for ever in a longer sample.
      #expect(fragment.video.allSatisfy { $0.duration <= MediaTime.ticks(ms: 1_000) }, "\(segment.file)")
    }
  }

  @Test(arguments: 1...12) func segmentsOfAnySessionAreReversible(seed: Int) throws {
    let session = try GeneratedSession(seed: seed, in: scratch)
    try expectReversible(segments(publish(session.batches), session.name))
  }

  /// Holds of more than a second get repeats that the segment's own file lacks.
  @Test(arguments: [1_050, 1_100, 2_000, 60_000]) func repeatsOfPlayersAreTakenOut(holdMs: Int64) throws {
    let batch = try scratch.directory("walk")
    for number in 0..<4 {
      try FileManager.default.copyItem(
        atPath: Fixture("gap").path + "/000\(number % 2).jpg",
        toPath: "\(batch)/\(LongSession.startMs + Int64(number) * holdMs).jpg")
    }
    var options = BatchEncoder.Options()
    (options.maxHoldMs, options.segmentMs) = (600_000, 60_000)
    let all = try segments(publish([batch], options), "walk")
    try expectReversible(all)
    let added = try all.map { try PackedSegment.fragment(of: $0, $1).fragment.added.count }
    #expect(added.reduce(0, +) > 0)
  }

  /// Added samples become one with those before them, whose duration a file cannot count then.
  @Test func durationsThatOverflowAreRefused() throws {
    let session = try GeneratedSession(seed: 3, in: scratch)
    let (segment, file) = try #require(try segments(publish(session.batches), session.name).first)
    let fragment = try PackedSegment.fragment(of: segment, file).fragment
    let long = fragment.video.map { $0.lasting(Int64(Int32.max)) }
    let video = [long[0]] + (0..<8).map { _ in Sample(duration: Int64(Int32.max), data: [1, 2, 3]) }
    let hostile = MP4PackFragment(
      source: fragment.source, video: video, timing: fragment.timing, added: Array(1...8))
    #expect(throws: SegmentMismatch.self) { try PackedSegment.file(of: hostile.bytes(number: 1, start: 0)) }
    let further = MP4PackFragment(source: fragment.source, video: video, timing: fragment.timing, added: [1, 99])
    #expect(throws: SegmentMismatch.self) { try PackedSegment.file(of: further.bytes(number: 1, start: 0)) }
  }

  @Test func otherBytesAreRefused() throws {
    let session = try GeneratedSession(seed: 3, in: scratch)
    let (segment, file) = try #require(try segments(publish(session.batches), session.name).first)
    #expect(throws: SegmentMismatch.self) { try PackedSegment.fragment(of: segment, file + [0]) }
    #expect(throws: SegmentMismatch.self) { try PackedSegment.fragment(of: segment, Array(file.dropLast())) }
    let bytes = try PackedSegment.fragment(of: segment, file).fragment.bytes(number: 1, start: 0)
    for length in stride(from: 0, to: bytes.count, by: 97) {
      #expect(throws: SegmentMismatch.self) { try PackedSegment.file(of: Array(bytes.prefix(length))) }
    }
    // Any byte of the tables: bytes of samples are compared by the digest of the file.
    var random = Random(seed: 5)
    let tables = 0..<(bytes.firstRange(of: Array("mdat".utf8))?.lowerBound ?? 0)
    let refused = (0..<2_000).count { _ in
      var changed = bytes
      changed[Int.random(in: tables, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
      return (try? PackedSegment.file(of: changed)) == nil
    }
    #expect(refused > 500)
  }
}
