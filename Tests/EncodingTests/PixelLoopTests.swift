import CFFmpeg
import CPixels
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// The loops over RGB give the values of the formulas, whatever the compiler makes of them.
@Suite struct PixelLoopTests {
  private func picture(
    _ width: Int, _ height: Int, _ format: AVPixelFormat, _ sample: () -> UInt8
  ) throws -> FrameBuffer {
    let result = try FrameBuffer(width: width, height: height, format: format)
    let (start, stride) = result.plane(0)
    let count = width * (format == AV_PIX_FMT_RGBA ? 4 : 3)
    for row in 0..<height {
      for column in 0..<count { start[row * stride + column] = sample() }
    }
    return result
  }

  private func samples(_ picture: FrameBuffer, _ index: Int, _ columns: Int, _ rows: Int) -> [Int] {
    let (start, stride) = picture.plane(index)
    return (0..<rows).flatMap { row in (0..<columns).map { Int(start[row * stride + $0]) } }
  }

  private func chroma(_ red: Int, _ green: Int, _ blue: Int, _ factors: (Int, Int, Int)) -> Int {
    let sum: Int = factors.0 * red + factors.1 * green + factors.2 * blue
    return min(255, (sum + 33_685_504) >> 18)
  }

  @Test(arguments: [1, 2, 3, 7, 8, 9, 10, 16, 17, 18, 19, 25, 40, 133], [1, 2, 3, 8])
  func rgbIsSubsampledToTheMeanOfTwoByTwoPixels(width: Int, height: Int) throws {
    var random = Random(seed: numericCast(width * 1_000 + height))
    // All values, and extremes alone: sums reach their bounds.
    for isExtreme in [false, true] {
      let rgb = try picture(width, height, AV_PIX_FMT_RGB24) {
        UInt8(isExtreme ? 255 * random.int(0...1) : random.int(0...255))
      }
      let from: [Int] = samples(rgb, 0, 3 * width, height)
      var luma: [Int] = []
      for pixel in 0..<width * height {
        let (red, green, blue): (Int, Int, Int) = (from[3 * pixel], from[3 * pixel + 1], from[3 * pixel + 2])
        let sum: Int = 19_595 * red + 38_470 * green + 7_471 * blue
        luma.append((sum + 32_768) >> 16)
      }
      let (columns, rows) = ((width + 1) / 2, (height + 1) / 2)
      var (blues, reds): ([Int], [Int]) = ([], [])
      for row in 0..<rows {
        for column in 0..<columns {
          var sums = [0, 0, 0]
          for y in [2 * row, min(2 * row + 1, height - 1)] {
            for x in [2 * column, min(2 * column + 1, width - 1)] {
              for channel in 0..<3 { sums[channel] += from[3 * (y * width + x) + channel] }
            }
          }
          blues.append(chroma(sums[0], sums[1], sums[2], (-11_059, -21_709, 32_768)))
          reds.append(chroma(sums[0], sums[1], sums[2], (32_768, -27_439, -5_329)))
        }
      }
      let result = try rgb.subsampled()
      #expect(samples(result, 0, width, height) == luma)
      #expect(samples(result, 1, columns, rows) == blues)
      #expect(samples(result, 2, columns, rows) == reds)
    }
  }

  @Test(arguments: [Colour.black, Colour(red: 255, green: 7, blue: 128)])
  func transparentPixelsAreBlendedOverTheBackground(background: Colour) throws {
    // Each sample with each alpha; the last row is opaque.
    var next = -1
    let rgba = try picture(256, 257, AV_PIX_FMT_RGBA) {
      next += 1
      return UInt8(next % 4 == 3 ? min(next / 1_024, 255) : next / 4 % 256)
    }
    let behind: [Int] = [Int(background.red), Int(background.green), Int(background.blue)]
    var wanted: [Int] = []
    for row in 0..<257 {
      let alpha = min(row, 255)
      for column in 0..<256 {
        for channel in 0..<3 {
          let sum: Int = column * alpha + behind[channel] * (255 - alpha)
          wanted.append((sum + 127) / 255)
        }
      }
    }
    let result = try PictureConverter(background: background).paintable(rgba)
    #expect(result.format == AV_PIX_FMT_RGB24)
    #expect(samples(result, 0, 3 * 256, 257) == wanted)
  }

  /// Screens have few colours, photographs many; the table has fewer places than either.
  @Test(arguments: [3, 4], [1, 7, 3_000, 1 << 24])
  func eachColourIsConvertedAsAlone(size: Int, colours: Int) throws {
    var random = Random(seed: size)
    let known = try #require(cpx_colours_create())
    defer { cpx_colours_free(known) }
    for count in [1, 2, 3, 511, 512, 513, 1_300, 30_000] {
      var pixels: [UInt8] = []
      while pixels.count < count * size {
        let colour = Int(random.int(0...Int64(colours - 1))) &* 0x9E_37B1 & 0xFF_FFFF
        let samples = [colour, colour >> 8, colour >> 16, Int(random.int(0...255))].map {
          UInt8(truncatingIfNeeded: $0)
        }
        for _ in 0..<(random.once(in: 3) ? random.int(1...40) : 1) { pixels += samples[..<size] }
      }
      pixels.removeSubrange((count * size)...)
      var expected = pixels
      for start in stride(from: 0, to: pixels.count, by: size) {
        // Some colours stay as they are.
        guard pixels[start] > 20 else { continue }
        expected[start] = pixels[start + 1]
        expected[start + 1] = pixels[start + 2] ^ 0x55
        expected[start + 2] = pixels[start]
      }
      // Twice: then the colours are known.
      for _ in 0..<2 {
        var converted = pixels
        cpx_recolour(
          known, &converted, count, size,
          { _, from, to, count in
            guard let from, let to else { return }
            for start in stride(from: 0, to: 3 * count, by: 3) {
              let isKept = from[start] <= 20
              to[start] = isKept ? from[start] : from[start + 1]
              to[start + 1] = isKept ? from[start + 1] : from[start + 2] ^ 0x55
              to[start + 2] = isKept ? from[start + 2] : from[start]
            }
          }, nil)
        #expect(converted == expected, "\(count) pixels")
      }
    }
  }
}
