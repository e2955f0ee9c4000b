import Encoding
import Foundation
import TestSupport
import Testing
import WorkQueues

@testable import FuzzTargets
@testable import Sessions

/// Replays fuzzing seeds and former findings. `make fuzz` does more, with sanitizers and coverage.
///
/// A violated invariant ends the process with a message that names it.
@Suite struct FuzzReplayTests {
  /// A directory of seeds for each target, made of the fixtures.
  private static let seeds = Result {
    let scratch = try ScratchDirectory()
    try Tool.output(Tool.python, [Fixture.root.appendingPathComponent("Fuzzing/seeds.py").path, scratch.path])
    return scratch
  }

  private static func inputs(_ target: FuzzTarget) throws -> [[UInt8]] {
    let found = Fixture.root.appendingPathComponent("Fuzzing/regressions/\(target.rawValue)").path
    let made = try seeds.get().path(target.rawValue)
    return try [made, found].flatMap { directory in
      try ((try? names(in: directory)) ?? []).map { name in
        Array(try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name)))
      }
    }
  }

  /// Applies one to four changes: flip a bit, replace a byte, remove or repeat a piece, or cut the end.
  private static func mutated(_ input: [UInt8], _ random: inout Random) -> [UInt8] {
    var bytes = input
    for _ in 0..<random.int(1...4) where !bytes.isEmpty {
      let place = Int(random.int(0...Int64(bytes.count - 1)))
      let end = min(bytes.count, place + Int(random.int(1...16)))
      switch random.int(0...4) {
      case 0: bytes[place] ^= 1 << UInt8(random.int(0...7))
      case 1: bytes[place] = UInt8(random.int(0...255))
      case 2: bytes.removeSubrange(place..<end)
      case 3: bytes.insert(contentsOf: bytes[place..<end], at: place)
      default: bytes.removeSubrange(place...)
      }
    }
    return bytes
  }

  @Test(arguments: FuzzTarget.allCases)
  func seedsAndFormerFindingsAndTheirMutationsViolateNoInvariant(target: FuzzTarget) throws {
    FFmpegLog.silence()
    let inputs = try Self.inputs(target)
    try #require(!inputs.isEmpty)
    var random = Random(seed: 1)
    for input in inputs {
      target.run(input)
      for _ in 0..<Extent.of(40, full: 1_000) { target.run(Self.mutated(input, &random)) }
    }
  }

  /// Else mutations would not reach behind the first table.
  @Test func seedsOfPacksAreRead() throws {
    let seeds = try Self.seeds.get()
    func seed(_ name: String) throws -> [UInt8] {
      Array(try Data(contentsOf: URL(fileURLWithPath: seeds.path("pack/" + name))))
    }
    #expect(try PackedSegment.file(of: seed("fragment")) == seed("file"))
    #expect(throws: Never.self) { try PackedSegment.file(of: seed("added")) }
    #expect(try PackedSegment.file(of: seed("ends")) != seed("file"))
    let segments = try Pack.segments(in: seed("whole"), startMs: 1_767_859_512_340, path: "whole")
    #expect(segments.count == 1)
  }
}
