import CFFmpeg
import Testing

@testable import Encoding

/// Grey pictures of limited range, as AVIF, HEIC and videos have them: black is 16 and white 235, in units of 8 bits.
@Suite struct GreyRangeTests {
  private let converter = PictureConverter()

  /// Returns two rows of grey samples, given in 8 bits. 255 is the highest sample.
  private func grey(_ samples: [UInt16], _ format: AVPixelFormat, _ range: AVColorRange) throws -> FrameBuffer {
    let picture = try FrameBuffer(width: samples.count, height: 2, format: format)
    picture.colourRange = range
    let shift = picture.sampleDepth - 8
    for row in 0..<picture.height {
      let plane = unsafe picture.plane(0)
      let line = unsafe UnsafeMutableRawPointer(plane.start + row * plane.stride)
      for (column, sample) in samples.enumerated() {
        if shift == 0 {
          unsafe line.storeBytes(of: UInt8(sample), toByteOffset: column, as: UInt8.self)
        } else {
          unsafe line.storeBytes(
            of: sample == 255 ? 1 << (8 + shift) - 1 : sample << shift, toByteOffset: 2 * column, as: UInt16.self)
        }
      }
    }
    return picture
  }

  private func firstRow(of picture: FrameBuffer, bytes: Int) -> [UInt8] {
    let plane = unsafe picture.plane(0)
    return unsafe Array(UnsafeBufferPointer(start: plane.start, count: bytes))
  }

  private static let formats = [AV_PIX_FMT_GRAY8, AV_PIX_FMT_GRAY10LE, AV_PIX_FMT_GRAY12LE]

  @Test(arguments: formats) func blackAndWhiteOfLimitedRangeAreBlackAndWhite(format: AVPixelFormat) throws {
    // Light outside the range is clipped. 125 is 126.9 in full range.
    let samples: [UInt16] = [0, 16, 125, 235, 254, 16]
    let picture = try grey(samples, format, AVCOL_RANGE_MPEG)
    let rgb = try converter.convert(picture, to: AV_PIX_FMT_RGB24, colours: .coded)
    #expect(firstRow(of: rgb, bytes: 18) == [0, 0, 127, 255, 255, 0].flatMap { [$0, $0, $0] })
    let opacity = try converter.convert(picture, to: AV_PIX_FMT_GRAY8, colours: .coded)
    #expect(firstRow(of: opacity, bytes: 6) == [0, 0, 127, 255, 255, 0])
    #expect(firstRow(of: try converter.convert(picture, to: AV_PIX_FMT_GRAY8), bytes: 2) == [0, 16])
  }

  /// Where a video does not state its range, players take it for limited.
  @Test(arguments: formats, [AVCOL_RANGE_MPEG, AVCOL_RANGE_UNSPECIFIED])
  func greyVideoOfLimitedRangeKeepsItsLuma(format: AVPixelFormat, range: AVColorRange) throws {
    let samples: [UInt16] = [16, 16, 125, 125, 235, 235]
    for quarterTurns in [0, 2] {
      let picture = try converter.planar420(
        ofVideo: grey(samples, format, range), quarterTurns: quarterTurns, maxSide: nil)
      let shown = quarterTurns == 0 ? samples : samples.reversed()
      for (found, wanted) in zip(firstRow(of: picture, bytes: 6), shown) {
        #expect(abs(Int(found) - Int(wanted)) <= 1, "\(found), not \(wanted)")
      }
    }
  }

  @Test(arguments: formats) func greyVideoOfFullRangeIsMadeLimited(format: AVPixelFormat) throws {
    let picture = try converter.planar420(
      ofVideo: grey([0, 0, 255, 255], format, AVCOL_RANGE_JPEG), quarterTurns: 0, maxSide: nil)
    #expect(firstRow(of: picture, bytes: 4) == [16, 16, 235, 235])
  }
}
