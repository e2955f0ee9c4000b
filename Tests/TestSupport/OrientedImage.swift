import Foundation

/// Image files with EXIF data, such as an orientation tag.
public enum OrientedImage {
  /// Returns a TIFF that contains only the orientation.
  private static func tiff(_ tag: UInt8, isLittleEndian: Bool) -> [UInt8] {
    isLittleEndian
      ? Array("II".utf8) + [42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, tag, 0, 0, 0, 0, 0, 0, 0]
      : Array("MM".utf8) + [0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, tag, 0, 0, 0, 0, 0, 0]
  }

  private static func bigEndian(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).reversed().map { UInt8(value >> (8 * $0) & 255) }
  }

  /// The checksum of a PNG chunk (ISO/IEC 15948, annex D).
  static func crc(_ bytes: [UInt8]) -> Int {
    let sum = bytes.reduce(0xFFFF_FFFF as UInt32) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
    }
    return Int(~sum)
  }

  /// The ffmpeg filter for each EXIF orientation, which turns the upright picture into the stored one.
  private static let filters = [
    "null", "hflip", "hflip,vflip", "vflip", "transpose=0", "transpose=2", "transpose=3", "transpose=1",
  ]

  /// Returns eight pictures, stored for the eight EXIF orientations, without EXIF.
  public static func stored(_ upright: [String], kind: String) throws -> [[UInt8]] {
    let scratch = try ScratchDirectory()
    let quality = ["jpg": ["-q:v", "1"], "webp": ["-lossless", "0", "-quality", "100"]][kind] ?? []
    var arguments = ["-v", "error"]
    for picture in upright { arguments += ["-i", picture] }
    for (index, filter) in filters.enumerated() {
      arguments += ["-map", "\(index):v", "-vf", filter, "-map_metadata", "-1"] + quality
      arguments += [scratch.path("\(index).\(kind)")]
    }
    try Tool.output("ffmpeg", arguments)
    return try filters.indices.map {
      Array(try Data(contentsOf: URL(fileURLWithPath: scratch.path("\($0).\(kind)"))))
    }
  }

  /// - Parameters:
  /// - file: An image without EXIF. The first chunk of a PNG must be its header.
  /// - width: The width of the upright picture.
  /// - height: The height of the upright picture.
  public static func file(_ file: [UInt8], kind: String, tag: Int, width: Int, height: Int) -> [UInt8] {
    let isLittleEndian = kind == "jpg" ? tag % 2 == 0 : kind == "webp" || tag % 2 == 1
    return Self.file(
      file, kind: kind, exif: tiff(UInt8(tag), isLittleEndian: isLittleEndian),
      storedSize: tag > 4 ? (height, width) : (width, height))
  }

  /// Returns a TIFF with texts in the directory of the capture, by tag.
  public static func captureTIFF(_ texts: [(tag: Int, text: String)]) -> [UInt8] {
    let values = texts.map { Array($0.text.utf8) + [0] }
    // The header, the first directory with one entry, and the directory of the capture.
    var valueOffset = 26 + 2 + 12 * texts.count + 4
    var entries: [UInt8] = []
    var data: [UInt8] = []
    for (index, value) in values.enumerated() {
      entries += bigEndian(texts[index].tag, 2) + [0, 2] + bigEndian(value.count, 4)
      if value.count <= 4 {
        entries += value + [UInt8](repeating: 0, count: 4 - value.count)
      } else {
        entries += bigEndian(valueOffset, 4)
        data += value
        valueOffset += value.count
      }
    }
    let first: [UInt8] = [0, 1, 0x87, 0x69, 0, 4, 0, 0, 0, 1, 0, 0, 0, 26, 0, 0, 0, 0]
    let parts: [[UInt8]] = [
      Array("MM".utf8), [0, 42, 0, 0, 0, 8], first, bigEndian(texts.count, 2), entries, [0, 0, 0, 0], data,
    ]
    return parts.flatMap { $0 }
  }

  /// - Parameters:
  /// - file: An image without EXIF. The first chunk of a PNG must be its header.
  /// - exif: A TIFF.
  public static func file(_ file: [UInt8], kind: String, exif: [UInt8], storedSize: (Int, Int)) -> [UInt8] {
    switch kind {
    case "jpg":
      let body = Array("Exif\0\0".utf8) + exif
      let parts: [[UInt8]] = [Array(file[..<2]), [0xFF, 0xE1], bigEndian(body.count + 2, 2), body, Array(file[2...])]
      return parts.flatMap { $0 }
    case "png":
      let body = Array("eXIf".utf8) + exif
      let parts: [[UInt8]] = [
        Array(file[..<33]), bigEndian(body.count - 4, 4), body, bigEndian(crc(body), 4), Array(file[33...]),
      ]
      return parts.flatMap { $0 }
    default:
      // The extended WebP format wraps the simple one. Its header declares the EXIF data and the picture size.
      var chunks = Array("VP8X".utf8)
      chunks += [10, 0, 0, 0, 8, 0, 0, 0]
      for side in [storedSize.0, storedSize.1] { chunks += bigEndian(side - 1, 3).reversed() }
      chunks += file[12...]
      chunks += Array("EXIF".utf8)
      chunks += bigEndian(exif.count, 4).reversed()
      chunks += exif
      var result = Array("RIFF".utf8)
      result += bigEndian(chunks.count + 4, 4).reversed()
      result += Array("WEBP".utf8)
      return result + chunks
    }
  }
}
