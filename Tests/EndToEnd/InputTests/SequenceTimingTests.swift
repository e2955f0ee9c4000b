import Foundation
import TestSupport
import Testing

@testable import ISOMedia

@Suite struct SequenceTimingTests {
  /// Returns the sequence parameter set that the encoder wrote for a picture size, from a segment's sample description.
  private func sets(of fixture: Fixture, _ scratch: ScratchDirectory) throws -> ParameterSets {
    let session = try EncoderWorker.encode(fixture, into: scratch)
    let file = [UInt8](try Data(contentsOf: URL(fileURLWithPath: session.video(session.manifests[0]))))
    let movie = try BoxReader(file[...]).first("moov")
    let table = try movie.first("trak").first("mdia").first("minf").first("stbl")
    let record = try table.first("stsd").skipping(8).first("avc1").skipping(78).first("avcC")
    return try #require(Array(record.bytes).withUnsafeBufferPointer { ParameterSets(configuration: $0) })
  }

  /// Stock ffmpeg reads the new frame rate. All other fields are unchanged.
  @Test(arguments: ["exact-1fps", "rotation"])
  func rewrittenSetDiffersInItsFrameRateOnly(fixture: String) throws {
    let scratch = try ScratchDirectory()
    let sets = try sets(of: Fixture(fixture), scratch)
    let slow = sets.atOneFrameASecond
    #expect(slow != sets && slow.picture == sets.picture && slow.atOneFrameASecond == slow)
    func fields(_ sets: ParameterSets) throws -> [String] {
      let stream = [0, 0, 0, 1] + sets.sequence + [0, 0, 0, 1] + sets.picture
      let path = try scratch.file("sets-\(UUID()).h264", stream)
      let result = try Tool.run(
        "ffmpeg", ["-f", "h264", "-i", path, "-c", "copy", "-bsf:v", "trace_headers", "-f", "null", "-"])
      // The text after each field's position.
      return result.errors.split(separator: "\n").compactMap { line in
        line.firstMatch(of: /\] \d+ +([a-z_0-9\[\]]+) +.* = (\d+)$/).map { "\($0.1) = \($0.2)" }
      }
    }
    let (before, after) = (try fields(sets), try fields(slow))
    #expect(before.count > 30 && before.count == after.count)
    let changed = zip(before, after).filter { $0 != $1 }.map(\.1)
    #expect(Set(changed) == ["num_units_in_tick = 1", "time_scale = 2"] || Set(changed) == ["time_scale = 2"])
  }

  /// Parameter sets of other encoders stay unchanged, for any bytes.
  @Test func unreadableSetIsUnchanged() throws {
    var random = Random(seed: 5)
    for length in [4, 5, 8, 20, 200] {
      let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
      let sets = ParameterSets(sequence: [0x67, 0x42, 0, 11] + bytes, picture: [0x68])
      let slow = sets.atOneFrameASecond
      #expect(slow == sets || slow.atOneFrameASecond == slow)
    }
  }
}
