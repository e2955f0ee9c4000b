/// Makes PNGs with any chunks.
public enum PNGImage {
  /// Returns a PNG.
  ///
  /// - Parameters:
  ///   - kind: the colour type: 0 grey, 2 RGB, 4 grey with alpha, 6 RGBA.
  ///   - samples: 8 or 16 bits each, row by row.
  ///   - chunks: names and bodies, between the header and the pixels.
  public static func file(
    width: Int, height: Int, depth: Int, kind: UInt8, samples: [Int], chunks: [(String, [UInt8])] = []
  ) -> [UInt8] {
    let row = samples.count / height
    let pixels = (0..<height).flatMap { y -> [UInt8] in
      [0] + samples[y * row..<(y + 1) * row].flatMap { number($0, depth / 8) }
    }
    var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    file += chunk("IHDR", number(width, 4) + number(height, 4) + [UInt8(depth), kind, 0, 0, 0])
    for (name, body) in chunks { file += chunk(name, body) }
    return file + chunk("IDAT", stored(pixels)) + chunk("IEND", [])
  }

  /// Returns a file with chunks inserted behind its header.
  public static func inserting(_ chunks: [(String, [UInt8])], into file: [UInt8]) -> [UInt8] {
    Array(file[..<33]) + chunks.flatMap { chunk($0.0, $0.1) } + Array(file[33...])
  }

  public static func chunk(_ name: String, _ body: [UInt8]) -> [UInt8] {
    let named = Array(name.utf8) + body
    return number(body.count, 4) + named + number(OrientedImage.crc(named), 4)
  }

  public static func number(_ value: Int, _ bytes: Int) -> [UInt8] {
    (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * (bytes - 1 - $0))) }
  }

  /// A zlib stream of stored blocks.
  public static func stored(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x78, 0x01]
    for start in stride(from: 0, to: bytes.count, by: 65_535) {
      let block = bytes[start..<min(start + 65_535, bytes.count)]
      let size = number(block.count, 2)
      result += [start + 65_535 < bytes.count ? 0 : 1, size[1], size[0], ~size[1], ~size[0]] + block
    }
    var (a, b) = (1, 0)
    for byte in bytes {
      a = (a + Int(byte)) % 65_521
      b = (b + a) % 65_521
    }
    return result + number(b, 2) + number(a, 2)
  }
}
