import TestSupport
import Testing

@testable import Encoding
@testable import FileSystem
@testable import ISOMedia

/// Files of a few hundred bytes that would need gigabytes of memory to open.
@Suite struct MP4CensusTests {
  init() { FFmpegLog.silence() }

  private static func file(samples: Int) -> [UInt8] {
    let sets = ParameterSets(sequence: [0x67, 0x4D, 0x40, 0x0B, 1], picture: [0x68, 1])
    let video = (0..<samples).map { _ in Sample(duration: 90_000, data: [0, 0, 0, 1, 0x65]) }
    return MP4File(
      width: 16, height: 16, parameterSets: sets, video: video,
      timing: [Sample(duration: 90_000 * Int64(samples), data: [0, 0])]
    ).bytes
  }

  private static func isBearable(_ file: [UInt8]) -> Bool {
    file.withUnsafeBytes { MP4SampleBudget.isBearable(MemoryBytes($0)) }
  }

  /// Returns a box of this type with 32-bit numbers.
  private static func box(_ type: String, _ numbers: [UInt32]) -> [UInt8] {
    var file = MP4Box()
    file.box(type) { box in for number in numbers { box.u32(number) } }
    return file.bytes
  }

  @Test func writtenJSONIsWithinLimits() throws {
    for samples in [1, 5, 3_000] {
      let file = Self.file(samples: samples)
      #expect(Self.isBearable(file))
      let scratch = try ScratchDirectory()
      try scratch.file("film.mp4", file)
      #expect(try MP4SampleBudget.isBearable(FileBytes(opening: scratch.path("film.mp4"))))
    }
  }

  @Test(
    arguments: [
      box("stsz", [0, 1, 85_000_000]), box("stz2", [0, 4, 85_000_000]),
      box("moof", [0]) + box("trun", [0, 85_000_000]),
      box("stts", [0, 1, 85_000_000, 1]), box("ctts", [0, 2, 40_000_000, 1, 45_000_000, 1]),
      box("stsz", [0, 1, .max]) + box("stsz", [0, 1, .max]), box("elst", [0, 2_000_000_000]),
      box("stts", [0, .max] + [UInt32](repeating: .max, count: 64)),
    ])
  func filmWithTooManySamplesIsNotOpened(bomb: [UInt8]) throws {
    var file = Self.file(samples: 3)
    // The box is inside `trak`, and a size does not match. A demuxer might still find it.
    let place = try #require(file.firstRange(of: Array("trak".utf8)))
    file.insert(contentsOf: bomb, at: place.upperBound)
    #expect(!Self.isBearable(file))
    #expect(throws: FFmpegError.self) { try file.withUnsafeBytes { _ = try MP4Reader(MemoryBytes($0)) } }
  }

  @Test func fileWithoutBoxesPassesTheCensus() {
    for file in [[], [0], Array(repeating: 0xFF, count: 99), [0, 0, 0, 1] + Array("moov".utf8)] as [[UInt8]] {
      #expect(Self.isBearable(file))
    }
  }

  /// The check skips media data, which may have any content.
  @Test func mediaDataIsNotParsedAsTables() {
    #expect(Self.isBearable(Self.box("mdat", [0x7374_737A, 0, 0, .max])))
    #expect(!Self.isBearable(Self.box("meta", [0x7374_737A, 0, 0, .max])))
  }
}
