import Foundation

/// The samples of a picture in the form that is coded: planar 4:2:0 of limited range. Made by plain loops, of pixels that another
/// program has decoded.
public struct CodedSamples: Equatable {
  public let width: Int
  public let height: Int
  public private(set) var luma: [UInt8]
  /// Both planes, with rounded up halves of the sides.
  public private(set) var chroma: [[UInt8]]

  private var columns: Int { (width + 1) / 2 }

  /// - Parameter pixels: red, green and blue, row by row.
  public init(rgb pixels: [UInt8], width: Int, height: Int) {
    (self.width, self.height) = (width, height)
    luma = (0..<width * height).map { pixel in
      let (red, green, blue) = (Int(pixels[3 * pixel]), Int(pixels[3 * pixel + 1]), Int(pixels[3 * pixel + 2]))
      return Self.limited((19_595 * red + 38_470 * green + 7_471 * blue + 32_768) >> 16, isLuma: true)
    }
    chroma = [[], []]
    for y in stride(from: 0, to: height, by: 2) {
      for x in stride(from: 0, to: width, by: 2) {
        var sums = [0, 0, 0]
        for row in [y, min(y + 1, height - 1)] {
          for column in [x, min(x + 1, width - 1)] {
            for channel in 0..<3 { sums[channel] += Int(pixels[3 * (row * width + column) + channel]) }
          }
        }
        for (plane, factors) in [(-11_059, -21_709, 32_768), (32_768, -27_439, -5_329)].enumerated() {
          let sum = factors.0 * sums[0] + factors.1 * sums[1] + factors.2 * sums[2]
          chroma[plane].append(Self.limited(min(255, (sum + 33_685_504) >> 18), isLuma: false))
        }
      }
    }
  }

  /// Decodes JPEGs of one size in 4:2:0 with stock ffmpeg.
  public static func jpegs(_ files: [[UInt8]], width: Int, height: Int) throws -> [CodedSamples] {
    let result = try Tool.run(
      "ffmpeg",
      [
        "-v", "error", "-f", "image2pipe", "-c:v", "mjpeg", "-i", "-", "-fps_mode", "passthrough", "-pix_fmt",
        "yuvj420p", "-f",
        "rawvideo", "-",
      ], input: Data(files.joined()))
    let (columns, rows) = ((width + 1) / 2, (height + 1) / 2)
    let size = width * height + 2 * columns * rows
    guard result.status == 0, result.output.count == size * files.count else {
      throw Tool.Failure("\(result.output.count) bytes for \(files.count) of \(width)×\(height): \(result.errors)")
    }
    let raw = [UInt8](result.output)
    return files.indices.map { index in
      let planes = Array(raw[index * size..<(index + 1) * size])
      return CodedSamples(full: planes, width: width, height: height)
    }
  }

  /// - Parameter planes: of full range, one after the other.
  private init(full planes: [UInt8], width: Int, height: Int) {
    (self.width, self.height) = (width, height)
    let (pixels, samples) = (width * height, (width + 1) / 2 * ((height + 1) / 2))
    luma = planes[..<pixels].map { Self.limited(Int($0), isLuma: true) }
    chroma = [0, 1].map { plane in
      planes[(pixels + plane * samples)...].prefix(samples).map { Self.limited(Int($0), isLuma: false) }
    }
  }

  private static func limited(_ sample: Int, isLuma: Bool) -> UInt8 {
    let value = isLuma ? 16 + Double(sample * 219) / 255 : 128 + Double((sample - 128) * 224) / 255
    return UInt8(value.rounded())
  }

  /// Returns the picture with pixels in black, and all chroma samples that have a part in them.
  public func masked(columns masked: Range<Int>, rows: Range<Int>) -> CodedSamples {
    var result = self
    for y in rows.clamped(to: 0..<height) {
      for x in masked.clamped(to: 0..<width) {
        result.luma[y * width + x] = 16
        for plane in 0...1 { result.chroma[plane][y / 2 * columns + x / 2] = 128 }
      }
    }
    return result
  }

  /// Returns whether each block of 16 by 16 pixels differs, row by row; nil if the sizes differ.
  public func changedBlocks(since other: CodedSamples) -> [[Bool]]? {
    guard (width, height) == (other.width, other.height) else { return nil }
    var result = Array(repeating: Array(repeating: false, count: (width + 15) / 16), count: (height + 15) / 16)
    for y in 0..<height {
      for x in 0..<width {
        let shared = y / 2 * columns + x / 2
        if luma[y * width + x] != other.luma[y * width + x]
          || (0...1).contains(where: { chroma[$0][shared] != other.chroma[$0][shared] })
        {
          result[y / 16][x / 16] = true
        }
      }
    }
    return result
  }

  /// Returns the number of blocks that differ; nil if the sizes differ.
  public func changedArea(since other: CodedSamples) -> Int? {
    changedBlocks(since: other)?.joined().count { $0 }
  }
}
