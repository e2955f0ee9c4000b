import CFFmpeg
import Foundation
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches
@testable import ISOMedia

/// A decoded picture becomes a key frame without loss. Stock ffmpeg decodes it.
@Suite struct KeyPictureTests {
  /// The planes of a picture of so many macroblocks.
  private func planes(_ columns: Int, _ rows: Int, _ sample: (_ x: Int, _ y: Int, _ plane: Int) -> UInt8) -> [UInt8] {
    (0..<3).flatMap { plane in
      let side = plane == 0 ? 16 : 8
      return (0..<rows * side).flatMap { y in (0..<columns * side).map { sample($0, y, plane) } }
    }
  }

  private func decode(_ unit: [UInt8], _ sets: ParameterSets, width: Int, height: Int) throws -> [UInt8] {
    let scratch = try ScratchDirectory()
    let film = MP4File(
      width: width, height: height, parameterSets: sets, video: [Sample(duration: 90_000, data: unit)],
      timing: [Sample(duration: 90_000, data: [0, 0])])
    try scratch.file("key.mp4", film.bytes)
    let result = try Tool.run(
      "ffmpeg",
      [
        "-v", "error", "-xerror", "-err_detect", "explode", "-apply_cropping", "0", "-i", scratch.path("key.mp4"),
        "-map", "0:v", "-f", "rawvideo", "-",
      ])
    #expect(result.errors == "")
    return Array(result.output)
  }

  @Test(arguments: [
    PixelSize(width: 16, height: 16), PixelSize(width: 18, height: 34), PixelSize(width: 180, height: 320),
    PixelSize(width: 750, height: 1_334),
  ])
  func everySampleIsKept(size: PixelSize) throws {
    var sets = try VideoEncoder(width: size.width, height: size.height, settings: EncoderSettings(.balanced))
      .parameterSets
    let writer = try KeyPictureWriter(for: sets)
    sets.keyPicture = writer.parameterSet
    #expect((writer.columns, writer.rows) == ((size.width + 15) / 16, (size.height + 15) / 16))
    var random = Random(seed: 7)
    // Flat, in stripes both ways, in flat blocks, with zeros that look like start codes, and at random.
    let pictures = [
      planes(writer.columns, writer.rows) { _, _, plane in UInt8(90 + plane) },
      planes(writer.columns, writer.rows) { x, _, plane in UInt8(x * 7 % 251 + plane) },
      planes(writer.columns, writer.rows) { _, y, plane in UInt8(y * 5 % 251 + plane) },
      planes(writer.columns, writer.rows) { x, y, plane in
        let side = plane == 0 ? 16 : 4
        return UInt8((x / side * 37 + y / side * 59 + plane) % 256)
      },
      planes(writer.columns, writer.rows) { x, y, _ in UInt8((x + y) % 5 == 4 ? 1 : 0) },
      planes(writer.columns, writer.rows) { x, y, _ in
        (x / 40 + y / 40) % 2 == 0 ? 235 : UInt8(truncatingIfNeeded: random.next())
      },
    ]
    for picture in pictures {
      let unit = try writer.picture(picture)
      #expect(try decode(unit, sets, width: size.width, height: size.height) == picture)
    }
    // A flat picture is stored in bits.
    #expect(try writer.picture(pictures[0]).count < 400 + writer.bytes / 384)
  }

  @Test func pictureOfAnotherSizeAndOtherStreamsAreRefused() throws {
    let sets = try VideoEncoder(width: 64, height: 64, settings: EncoderSettings(.balanced)).parameterSets
    let writer = try KeyPictureWriter(for: sets)
    #expect(throws: SegmentMismatch.self) { try writer.picture([UInt8](repeating: 0, count: writer.bytes - 1)) }
    #expect(throws: SegmentMismatch.self) {
      try KeyPictureWriter(for: ParameterSets(sequence: [0x67, 66, 0, 30], picture: sets.picture))
    }
  }

  /// Zeros beside the number change the unit's emulation prevention bytes.
  @Test func pictureIsNumberedWhereItsNeighboursAreZero() throws {
    let sets = try VideoEncoder(width: 64, height: 64, settings: EncoderSettings(.balanced)).parameterSets
    let writer = try SkipSliceWriter(after: sets)
    // A P slice whose number and the bytes behind it are zero: 0, then an emulation prevention byte.
    let head: [UInt8] = [0x41, 0x9A, 0x00, 0x00, 0x01, 0x55, 0x77]
    var unit = NALUnit.lengthPrefixed(NALUnit.unit(of: head))
    for number in [1, 15, 0] {
      try writer.renumber(&unit, number)
      var reader = BitReader(unit: unit.dropFirst(4))
      _ = (reader.bits(8), reader.unsigned(), reader.unsigned(), reader.unsigned())
      #expect(reader.bits(4) == number)
      #expect(Int(unit[3]) == unit.count - 4)
      #expect(NALUnit.payload(of: unit[4...]).count == head.count)
    }
    #expect(unit == NALUnit.lengthPrefixed(NALUnit.unit(of: head)))
  }
}
