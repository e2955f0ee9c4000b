// The regions of a picture as pages of a TIFF in memory, grey and uncompressed: the one form of several pictures that tesseract reads
// from a pipe.

/// A grey picture: the luma of a decoded one, black 0 and white 255.
package struct GreyPicture: Sendable {
  package let width: Int
  package let height: Int
  /// Row by row, without gaps.
  let samples: [UInt8]

  package init(width: Int, height: Int, samples: [UInt8]) {
    precondition(samples.count == width * height)
    (self.width, self.height, self.samples) = (width, height, samples)
  }

  /// Copies the luma of a picture in planar 4:2:0, of full range.
  package init(lumaOf picture: FrameBuffer) {
    let plane = unsafe picture.plane(0)
    var samples: [UInt8] = []
    samples.reserveCapacity(picture.width * picture.height)
    for row in 0..<picture.height {
      unsafe samples += UnsafeBufferPointer(start: plane.start + row * plane.stride, count: picture.width)
    }
    self.init(width: picture.width, height: picture.height, samples: samples)
  }
}

enum TextPages {
  /// Returns a TIFF (TIFF 6.0, little endian) with a page for each region.
  ///
  /// - Parameter regions: within the picture.
  static func tiff(of picture: GreyPicture, _ regions: [PictureRegion]) -> [UInt8] {
    var bytes = Array("II".utf8) + [42, 0, 0, 0, 0, 0]
    bytes.reserveCapacity(8 + regions.reduce(0) { $0 + $1.width * $1.height + 160 })
    // Where the offset of the next directory has to stand.
    var link = 4
    for region in regions {
      let start = bytes.count
      for row in region.y..<region.y + region.height {
        let first = row * picture.width + region.x
        bytes += picture.samples[first..<first + region.width]
      }
      // A directory begins at a word.
      if bytes.count % 2 != 0 { bytes.append(0) }
      put(UInt32(bytes.count), in: &bytes, at: link)
      // Width, height, 8 bits, no compression, black is 0, one strip of all rows.
      let entries: [(UInt16, Int)] = [
        (256, region.width), (257, region.height), (258, 8), (259, 1), (262, 1), (273, start), (277, 1),
        (278, region.height), (279, region.width * region.height),
      ]
      bytes += [UInt8(entries.count), 0]
      for (tag, value) in entries {
        bytes += [UInt8(tag & 255), UInt8(tag >> 8), 4, 0, 1, 0, 0, 0, 0, 0, 0, 0]
        put(UInt32(value), in: &bytes, at: bytes.count - 4)
      }
      link = bytes.count
      bytes += [0, 0, 0, 0]
    }
    return bytes
  }

  private static func put(_ value: UInt32, in bytes: inout [UInt8], at index: Int) {
    for byte in 0..<4 { bytes[index + byte] = UInt8(truncatingIfNeeded: value >> (8 * byte)) }
  }
}
