import FileSystem
import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches
@testable import SegmentEncoder
@testable import Sessions

/// A batch that begins with the files that the previous batch of its session ended with does not decode them again.
@Suite struct LastFrameTests {
  private let scratch: ScratchDirectory
  private let frames = Fixture("exact-1fps")

  init() throws { scratch = try ScratchDirectory() }

  /// Makes a batch of fixture frames at one a second.
  private func batch(_ name: String, _ pictures: [Int], startMs: Int, note: String = "") throws -> String {
    let names = try FileManager.default.contentsOfDirectory(atPath: frames.path)
      .filter { $0.hasSuffix(".jpg") }.sorted()
    try FileManager.default.createDirectory(atPath: scratch.path(name), withIntermediateDirectories: true)
    for (index, picture) in pictures.enumerated() {
      try scratch.file("\(name)/\(startMs + 1_000 * index).jpg", frames.bytes(names[picture]))
    }
    if !note.isEmpty { try scratch.file("\(name)/batch.json", Array(note.utf8)) }
    return scratch.path(name)
  }

  /// Publishes these batches with one encoder, or with one for each. Returns the receipts, and the number of decoded
  /// pictures.
  private func publish(
    _ batches: [String], into output: String, sharesEncoder: Bool
  ) throws -> ([Receipt], decoded: Int) {
    var options = BatchEncoder.Options()
    let profile = Profile()
    options.profile = profile
    let directory = try OutputDirectory(scratch.path(output))
    let shared = BatchEncoder(options, output: directory)
    let receipts = try batches.flatMap {
      try (sharesEncoder ? shared : BatchEncoder(options, output: directory)).publish($0)
    }
    let decoded = profile.rows.first { $0[0] == "decode" }.flatMap { Int($0[2]) } ?? 0
    #expect(directory.close().isEmpty)
    return (receipts, decoded)
  }

  /// Publishes the batches with one encoder and with several, and expects the same. Returns the numbers of decoded pictures.
  private func decoded(_ batches: [String]) throws -> (together: Int, apart: Int) {
    let together = try publish(batches, into: "together", sharesEncoder: true)
    let apart = try publish(batches, into: "apart", sharesEncoder: false)
    #expect(together.0.map(\.unchanged) == apart.0.map(\.unchanged))
    let names = try #require(FileManager.default.subpaths(atPath: scratch.path("apart"))).sorted()
    #expect(try #require(FileManager.default.subpaths(atPath: scratch.path("together"))).sorted() == names)
    let files = names.filter { $0.hasSuffix(".mp4") || $0.hasSuffix(".json") }
    #expect(files.count > batches.count)
    for name in files {
      #expect(
        try Data(contentsOf: URL(fileURLWithPath: scratch.path("together/" + name)))
          == Data(contentsOf: URL(fileURLWithPath: scratch.path("apart/" + name))), "\(name)")
    }
    return (together.decoded, apart.decoded)
  }

  @Test func sameFileIsNotDecodedAgain() throws {
    let batches = [
      try batch("s@1", [0, 1, 2], startMs: 1_767_859_512_000), try batch("s@2", [2, 2, 3], startMs: 1_767_859_515_000),
      try batch("s@3", [3, 2], startMs: 1_767_859_518_000),
    ]
    let decoded = try decoded(batches)
    #expect(decoded.apart == 3 + 2 + 2)
    #expect(decoded.together == 3 + 1 + 1)
  }

  /// A picture with a cached key frame is decoded only for the number of blocks in which it and the next one differ.
  @Test func cachedPictureHasTheSameChangedBlocks() throws {
    let pictures = Array(repeating: 0, count: 5) + Array(repeating: 1, count: 5)
    let batches = [
      try batch("s@1", pictures, startMs: 1_767_859_512_000), try batch("s@2", pictures, startMs: 1_767_859_522_000),
    ]
    let decoded = try decoded(batches)
    #expect(decoded.together == 4 && decoded.apart == 4)
    let frames = try [1_767_859_522_000, 1_767_859_527_000].map {
      try SegmentManifestJSON(scratch.path("together/s/segment-\($0).json")).frames[0].object?["changedBlocks"]?.integer
    }
    #expect(frames[0] == nil)
    #expect(try #require(frames[1]) > 0)
  }

  @Test func cachedPictureHasTheSameMasks() throws {
    let batches = try [1_767_859_512_000, 1_767_859_517_000, 1_767_859_522_000].enumerated().map { number, startMs in
      let masked = (0..<5).map {
        let timeMs = startMs + 1_000 * $0
        return
          #"{"file": "\#(timeMs).jpg", "timeMs": \#(timeMs), "masks": [{"x": -4, "y": 9.5, "width": 40, "height": 40}]}"#
      }
      let note = #"{"version": 1, "session": "s", "frames": [\#(masked.joined(separator: ","))]}"#
      return try batch("s@\(number)", Array(repeating: number % 2, count: 5), startMs: startMs, note: note)
    }
    // The last batch is encoded with the cached key frame of the first.
    #expect(try decoded(batches).together == 2)
    let frames = try SegmentManifestJSON(scratch.path("together/s/segment-1767859522000.json")).frames
    #expect(
      frames.map { $0.object?["masks"]?.line }
        == Array(
          repeating: #"[{"height":41,"width":36,"x":0,"y":9}]"#, count: 5))
  }

  @Test func sameFileOfAnotherSessionIsDecodedAgain() throws {
    let batches = [
      try batch("one@1", [0, 1], startMs: 1_767_859_512_000), try batch("two@1", [1, 2], startMs: 1_767_859_514_000),
    ]
    let decoded = try decoded(batches)
    #expect(decoded.together == 4 && decoded.apart == 4)
  }

  /// The last frame of a batch may look otherwise than its file, and so may the first one of the next batch.
  @Test func sameFileWithOtherMasksIsDecodedAgain() throws {
    let masked = [1_767_859_514_000, 1_767_859_515_000].map {
      #"{"file": "\#($0).jpg", "timeMs": \#($0), "masks": [{"x": 0, "y": 0, "width": 40, "height": 40}]}"#
    }
    let note = #"{"version": 1, "session": "s", "frames": [\#(masked.joined(separator: ","))]}"#
    let batches = [
      try batch("s@1", [0, 1], startMs: 1_767_859_512_000),
      try batch("s@2", [1, 2], startMs: 1_767_859_514_000, note: note),
      try batch("s@3", [2, 3], startMs: 1_767_859_516_000),
    ]
    let decoded = try decoded(batches)
    #expect(decoded.together == 6 && decoded.apart == 6)
  }
}
