import FileSystem
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches
@testable import ISOMedia

@Suite struct SegmentCheckTests {
  init() { FFmpegLog.silence() }

  private func file(_ fixture: String) throws -> MP4File {
    let decoder = PictureDecoder(limits: Limits())
    let picture = try decoder.picture(from: try Fixture(fixture).bytes("1767859512340.jpg"), masks: .none)
    let encoder = try VideoEncoder(
      width: picture.codedWidth, height: picture.codedHeight, settings: EncoderSettings(.balanced))
    let coded = try encoder.encode(picture, pts: 0) + encoder.encode(picture, pts: 90_000) + encoder.finish()
    return MP4File(
      width: picture.codedWidth, height: picture.codedHeight, parameterSets: encoder.parameterSets,
      video: coded.map { Sample(duration: 90_000, data: $0.data) },
      timing: [Sample(duration: 180_000, data: [0, 1, 65])])
  }

  @Test func writtenSegmentPassesTheReadback() throws {
    let file = try file("single-frame")
    try SegmentReadback.compare(file.bytes, with: file)
    #expect(file.parameterSets.codec == "avc1.4D400B")
  }

  /// Verifies the project's own check against libavformat's demuxer, which must see the same samples.
  @Test func segmentThatPassesTheCheckIsReadByAStockDemuxer() throws {
    let coded = try file("single-frame")
    var random = Random(seed: 6)
    for _ in 0..<50 {
      func samples(_ duration: Int64, _ text: (Int) -> [UInt8]) -> [Sample] {
        let cuts = Set(
          (0..<Int.random(in: 0...9, using: &random)).map { _ in Int64.random(in: 1..<duration, using: &random) }
        ).sorted()
        return zip([0] + cuts, cuts + [duration]).enumerated().map { Sample(duration: $1.1 - $1.0, data: text($0)) }
      }
      let duration = 90 * random.int(2...20_000_000)
      let file = MP4File(
        width: coded.width, height: coded.height, parameterSets: coded.parameterSets,
        video: samples(duration) { coded.video[min($0, 1)].data }, timing: samples(duration) { [0, 1, UInt8($0)] })
      let bytes = file.bytes
      try SegmentReadback.compare(bytes, with: file)
      try bytes.withUnsafeBytes { buffer in
        let reader = try MP4Reader(MemoryBytes(buffer))
        #expect(reader.trackCount == 2)
        #expect(reader.durationUs == duration * 100 / 9)
        #expect(reader.parameterSets == file.parameterSets)
        var read: [[Sample]] = [[], []]
        while let sample = try reader.next() {
          let start = read[sample.track].reduce(0) { $0 + $1.duration }
          #expect(sample.pts == start && sample.dts == start)
          #expect(sample.isKey == (sample.track == 1 || start == 0))
          read[sample.track].append(Sample(duration: sample.duration, data: Array(sample.bytes)))
        }
        for (found, wanted) in zip(read, [file.video, file.timing]) {
          #expect(found.map(\.duration) == wanted.map(\.duration))
          #expect(found.map(\.data) == wanted.map(\.data))
        }
      }
    }
  }

  /// The check covers every byte except appearance and unused fields. This list has those bytes with their boxes.
  @Test func uncheckedBytesOfASegmentAreListed() throws {
    let file = try file("single-frame")
    let bytes = file.bytes
    var free: [String: Int] = [:]
    for place in bytes.indices {
      var wrong = bytes
      wrong[place] ^= 0x21
      do {
        try SegmentReadback.compare(wrong, with: file)
        free[Self.box(at: place, in: bytes), default: 0] += 1
      } catch {}
    }
    #expect(
      free == [
        "ftyp": 24,  // brands
        "moov/mvhd": 88,  // creation, modification, rate, volume, matrix, next track
        "moov/trak/tkhd": 2 * 76,  // creation, modification, number, layer, group, volume, matrix, size
        "moov/trak/mdia/mdhd": 2 * 12,  // creation, modification, language
        "moov/trak/mdia/hdlr": 53,  // names
        "moov/trak/mdia/minf/vmhd": 12, "moov/trak/mdia/minf/nmhd": 4, "moov/trak/mdia/minf/dinf": 2 * 28,
        "moov/trak/mdia/minf/stbl/stsd": 173,  // resolution, depth, colours; the texts' style
      ])
    for count in stride(from: 0, to: bytes.count, by: 7) {
      #expect(throws: SegmentMismatch.self) { try SegmentReadback.compare(Array(bytes.prefix(count)), with: file) }
    }
  }

  /// Returns the path of the innermost box, through the boxes that contain only boxes.
  private static func box(at place: Int, in bytes: [UInt8]) -> String {
    var (path, range) = ([String](), 0..<bytes.count)
    let holders = ["moov", "trak", "mdia", "minf", "stbl"]
    while range.count >= 8 {
      let size = bytes[range.lowerBound..<range.lowerBound + 4].reduce(0) { $0 << 8 | Int($1) }
      guard place < range.lowerBound + size else {
        range = range.lowerBound + size..<range.upperBound
        continue
      }
      let type = String(decoding: bytes[range.lowerBound + 4..<range.lowerBound + 8], as: UTF8.self)
      path.append(type)
      guard holders.contains(type), place >= range.lowerBound + 8 else { break }
      range = range.lowerBound + 8..<range.lowerBound + size
    }
    return path.joined(separator: "/")
  }

  /// The check detects each duration, size or count that differs from the file.
  @Test func segmentWithDifferentReadbackIsRefused() throws {
    let file = try file("single-frame")
    let bytes = file.bytes
    func expecting(_ video: [Sample], _ timing: [Sample]) -> MP4File {
      MP4File(width: file.width, height: file.height, parameterSets: file.parameterSets, video: video, timing: timing)
    }
    let short = Sample(duration: 89_999, data: file.video[1].data)
    let long = Sample(duration: 90_000, data: file.video[1].data + [0])
    for wrong in [
      expecting([file.video[0], short], file.timing), expecting([file.video[0], long], file.timing),
      expecting([file.video[0]], file.timing), expecting(file.video + [file.video[1]], file.timing),
      expecting(file.video, []), expecting(file.video, file.timing + file.timing),
    ] {
      #expect(throws: SegmentMismatch.self) { try SegmentReadback.compare(bytes, with: wrong) }
    }
  }
}
