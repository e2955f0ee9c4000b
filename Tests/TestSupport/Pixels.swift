import Foundation

/// Pictures decoded by stock ffmpeg.
public struct Pixels {
  public let width: Int
  public let height: Int
  /// Red, green and blue bytes, row by row.
  public let bytes: [UInt8]

  public init(width: Int, height: Int, bytes: [UInt8]) {
    precondition(bytes.count == width * height * 3)
    self.width = width
    self.height = height
    self.bytes = bytes
  }

  /// Decodes a video or an image. Returns one element for each sample.
  ///
  /// - Parameter chroma: libswscale's method to upsample chroma to the picture size. `neighbor` means no smoothing.
  public static func decode(
    _ file: String, width: Int, height: Int, chroma: String = "bicubic", options: [String] = []
  ) throws -> [Pixels] {
    let raw = Array(
      try Tool.output(
        "ffmpeg",
        [
          "-v", "error", "-i", file, "-map", "0:v", "-fps_mode", "passthrough", "-sws_flags",
          "\(chroma)+accurate_rnd+full_chroma_int",
        ] + options + ["-pix_fmt", "rgb24", "-f", "rawvideo", "-"]))
    return try pictures(raw, of: file, width, height)
  }

  /// Decodes several videos with one process, because a process takes longer to start than to decode.
  public static func decode(_ files: [(path: String, width: Int, height: Int)]) throws -> [[Pixels]] {
    let scratch = try ScratchDirectory()
    var arguments = ["-v", "error"]
    for file in files { arguments += ["-i", file.path] }
    for index in files.indices {
      arguments += [
        "-map", "\(index):v", "-fps_mode", "passthrough", "-sws_flags", "bicubic+accurate_rnd+full_chroma_int",
        "-pix_fmt", "rgb24", "-f", "rawvideo", scratch.path("\(index).rgb"),
      ]
    }
    try Tool.output("ffmpeg", arguments)
    return try files.indices.map { index in
      let raw = try Data(contentsOf: URL(fileURLWithPath: scratch.path("\(index).rgb")))
      return try pictures(Array(raw), of: files[index].path, files[index].width, files[index].height)
    }
  }

  private static func pictures(_ raw: [UInt8], of file: String, _ width: Int, _ height: Int) throws -> [Pixels] {
    let size = width * height * 3
    guard raw.count % size == 0, !raw.isEmpty else {
      throw Tool.Failure("\(file): \(raw.count) bytes are no pictures of \(width)×\(height)")
    }
    return stride(from: 0, to: raw.count, by: size).map {
      Pixels(width: width, height: height, bytes: Array(raw[$0..<$0 + size]))
    }
  }

  public subscript(x: Int, y: Int) -> [UInt8] {
    let offset = (y * width + x) * 3
    return Array(bytes[offset..<offset + 3])
  }

  /// The number that a fixture's patches show. The leftmost patch is the lowest bit.
  public var number: Int {
    (0..<8).reduce(0) { number, bit in
      let patch = self[width * (2 * bit + 1) / 16, height * 3 / 8]
      return patch[1] > 127 ? number | 1 << bit : number
    }
  }

  /// The mean CIEDE2000 difference to another picture of the same size.
  public func difference(to other: Pixels) -> Double { ColourDifference(self, other).mean }

  /// The picture at half size. Each pixel is the mean of 2×2 pixels. Odd sides are rounded up, and their last pixels
  /// count twice.
  public var halved: Pixels {
    let columns = (width + 1) / 2
    let rows = (height + 1) / 2
    var result: [UInt8] = []
    result.reserveCapacity(columns * rows * 3)
    bytes.withUnsafeBufferPointer { bytes in
      for row in 0..<rows {
        let upper = 2 * row * width
        let lower = min(2 * row + 1, height - 1) * width
        for column in 0..<columns {
          let left = 2 * column
          let right = min(left + 1, width - 1)
          for channel in 0..<3 {
            let above = Int(bytes[(upper + left) * 3 + channel]) + Int(bytes[(upper + right) * 3 + channel])
            let below = Int(bytes[(lower + left) * 3 + channel]) + Int(bytes[(lower + right) * 3 + channel])
            result.append(UInt8((above + below + 2) / 4))
          }
        }
      }
    }
    return Pixels(width: columns, height: rows, bytes: result)
  }

  /// The picture with chroma shared by 2×2 pixels, as in the films. Uses JFIF's matrix in full range.
  public var withSharedChroma: Pixels {
    var result = bytes
    let halved = halved
    for y in 0..<height {
      for x in 0..<width {
        let at = (y * width + x) * 3
        let shared = (y / 2 * halved.width + x / 2) * 3
        let change = Pixels.luma(bytes, at) - Pixels.luma(halved.bytes, shared)
        for channel in 0..<3 {
          result[at + channel] = UInt8(max(0, min(255, Double(halved.bytes[shared + channel]) + change)).rounded())
        }
      }
    }
    return Pixels(width: width, height: height, bytes: result)
  }

  private static func luma(_ bytes: [UInt8], _ at: Int) -> Double {
    0.299 * Double(bytes[at]) + 0.587 * Double(bytes[at + 1]) + 0.114 * Double(bytes[at + 2])
  }
}
