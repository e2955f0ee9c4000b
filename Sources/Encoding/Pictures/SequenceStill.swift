// A picture of a GIF, an APNG, an animated WebP or a TIFF as a file of its own, so that it is checked and decoded as any other file.

import CDeflate
import FrameBatches

extension ImageSequence {
  /// Returns a file with one of the pictures alone, as large as this picture is.
  func still(_ index: Int, of file: [UInt8]) -> [UInt8] {
    let picture = pictures[index]
    switch kind {
    case .gif: return Self.gif(picture, of: file)
    case .png: return Self.png(picture, of: file)
    case .webp: return Self.webp(picture, of: file)
    default: return Self.page(at: picture.bytes.lowerBound, of: file)
    }
  }

  private static func number(_ value: Int, bytes: Int) -> [UInt8] {
    (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  private static func gif(_ picture: Picture, of file: [UInt8]) -> [UInt8] {
    guard let head = GIFFile.head(of: file) else { return [] }
    var still = Array(file[head])
    let size = number(picture.size.width, bytes: 2) + number(picture.size.height, bytes: 2)
    still.replaceSubrange(6..<10, with: size)
    still += file[picture.control]
    let image = still.count
    still += file[picture.bytes]
    still.replaceSubrange(image + 1..<image + 5, with: [0, 0, 0, 0])
    return still + [0x3B]
  }

  /// Chunks before the pixels that decide how they are shown.
  private static let chunksOfPNG: Set = ["PLTE", "tRNS", "iCCP", "cICP", "sRGB", "gAMA", "cHRM", "sBIT"]

  private static func png(_ picture: Picture, of file: [UInt8]) -> [UInt8] {
    var still = Array(file[..<8])
    func add(_ name: String, _ body: ArraySlice<UInt8>) {
      let start = still.count
      still += number(body.count, bytes: 4).reversed() + Array(name.utf8) + body
      let sum = unsafe still.withUnsafeBufferPointer {
        unsafe libdeflate_crc32(0, $0.baseAddress! + start + 4, 4 + body.count)
      }
      still += number(Int(sum), bytes: 4).reversed()
    }
    /// Adds a chunk with another name, unless its own checksum is wrong: the decoder has to find that.
    func add(_ chunk: ImageChunk, as name: String, without count: Int) {
      guard chunk.isIntact(in: file), let body = chunk.body, body.count >= count else {
        still += file[chunk.range]
        return
      }
      add(name, body.dropFirst(count))
    }
    for chunk in ImageChunk.chunks(of: file, .png, from: 8) {
      if chunk.name == "IHDR", let body = chunk.body, body.count == 13 {
        let size = number(picture.size.width, bytes: 4).reversed() + number(picture.size.height, bytes: 4).reversed()
        add("IHDR", (size + body.dropFirst(8))[...])
      } else if chunksOfPNG.contains(chunk.name) {
        still += file[chunk.range]
      } else if ["IDAT", "fcTL"].contains(chunk.name) {
        break
      }
    }
    for chunk in ImageChunk.chunks(of: file, .png, from: picture.bytes.lowerBound) {
      guard chunk.range.lowerBound < picture.bytes.upperBound else { break }
      switch chunk.name {
      case "IDAT": add(chunk, as: "IDAT", without: 0)
      // Its number comes first.
      case "fdAT": add(chunk, as: "IDAT", without: 4)
      default: break
      }
    }
    add("IEND", [])
    return still
  }

  private static func webp(_ picture: Picture, of file: [UInt8]) -> [UInt8] {
    // The flags without those of an animation, EXIF and XMP.
    var chunks = file[12..<20] + [file[20] & ~0b1110] + file[21..<24]
    chunks += number(picture.size.width - 1, bytes: 3) + number(picture.size.height - 1, bytes: 3)
    if let profile = ImageChunk.chunks(of: file, .webp, from: 30).first(where: { _ in true }), profile.name == "ICCP" {
      chunks += file[profile.range]
    }
    return WebPChunks.riff(chunks + file[picture.bytes])
  }

  private static func page(at place: Int, of file: [UInt8]) -> [UInt8] {
    let digits = number(place, bytes: 4)
    return file[..<4] + (file.starts(with: "II".utf8) ? digits : digits.reversed()) + file[8...]
  }
}
