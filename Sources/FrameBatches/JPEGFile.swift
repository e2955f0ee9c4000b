// A JPEG taken apart into its segments (ITU-T T.81, B.1.1), by one set of rules for all who look into it. Only the segments that
// make the picture are decoded: libavcodec takes some programs' comments for orders, and what EXIF says for text, gigabytes of it.

import Glibc

package struct JPEGFile {
  package struct Segment {
    /// The marker's second byte.
    package let marker: UInt8
    /// From the marker to the end of its body; of a scan, of its coded data.
    package let range: Range<Int>
    package let body: Range<Int>
  }

  package let bytes: [UInt8]
  /// Up to the end of the image, or to where the file breaks off.
  package let segments: [Segment]

  /// nil where something else stands in the place of a segment.
  package init?(_ bytes: [UInt8]) {
    guard bytes.starts(with: [0xFF, 0xD8]) else { return nil }
    var segments: [Segment] = []
    var offset = 2
    reading: while offset + 1 < bytes.count {
      guard bytes[offset] == 0xFF else { return nil }
      let marker = bytes[offset + 1]
      switch marker {
      case 0xFF: offset += 1  // fill byte
      case 0x01, 0xD0...0xD7: offset += 2  // without a body
      case 0xD9:
        segments.append(Segment(marker: marker, range: offset..<offset + 2, body: offset..<offset))
        break reading
      case 0xC0...0xCF, 0xDA...0xFE:
        let length = offset + 3 < bytes.count ? Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3]) : 0
        guard length >= 2, offset + 2 + length <= bytes.count else { break reading }
        let body = offset + 4..<offset + 2 + length
        let end = marker == 0xDA ? Self.endOfCodedData(in: bytes, from: body.upperBound) : body.upperBound
        segments.append(Segment(marker: marker, range: offset..<end, body: body))
        offset = end
      default: return nil
      }
    }
    (self.bytes, self.segments) = (bytes, segments)
  }

  /// The next marker that is neither a stuffed byte nor one of restart.
  private static func endOfCodedData(in bytes: [UInt8], from start: Int) -> Int {
    bytes.withUnsafeBufferPointer { file in
      var offset = start
      while offset + 1 < file.count {
        guard let found = memchr(file.baseAddress! + offset, 0xFF, file.count - 1 - offset) else { break }
        offset = UnsafePointer(found.assumingMemoryBound(to: UInt8.self)) - file.baseAddress!
        switch file[offset + 1] {
        case 0x00, 0x01, 0xD0...0xD7: offset += 2
        case 0xFF: offset += 1
        default: return offset
        }
      }
      return file.count
    }
  }

  package func body(of segment: Segment) -> ArraySlice<UInt8> { bytes[segment.body] }

  // MARK: - What it is

  /// The first frame header (B.2.2).
  private var frame: Segment? {
    let frame = segments.first { $0.isFrame }
    return frame.flatMap { $0.body.count >= 6 ? $0 : nil }
  }

  /// In pixels.
  package var size: (width: Int, height: Int)? {
    guard let body = frame.map(body) else { return nil }
    func u16(_ offset: Int) -> Int {
      Int(body[body.startIndex + offset]) << 8 | Int(body[body.startIndex + offset + 1])
    }
    return (u16(3), u16(1))
  }

  /// Scans of a picture, far more than any has: each goes over the whole of it.
  private static let scans = 500

  /// Why it is refused, whatever else is in it: libavcodec knows nothing of it, or shows it too dark.
  package var reasonToRefuse: String? {
    guard let frame else { return "invalid data" }
    guard segments.count(where: { $0.marker == 0xDA }) <= Self.scans else { return "more than \(Self.scans) scans" }
    switch frame.marker {
    case 0xC5...0xC7, 0xCD...0xCF: return "a hierarchical JPEG is not supported"
    case 0xC9...0xCB: return "a JPEG with arithmetic coding is not supported"
    default:
      let bits = bytes[frame.body.lowerBound]
      guard bits == 8 else { return "a JPEG of \(bits) bits a sample, not 8, is not supported" }
      return isSubsampledRGB(frame) ? "a JPEG of red, green and blue in different resolutions is not supported" : nil
    }
  }

  /// libavcodec takes such a picture for YCbCr. Like libjpeg, decide whether an image is RGB: JFIF is not; then Adobe's word
  /// counts, and then the names of the components.
  private func isSubsampledRGB(_ frame: Segment) -> Bool {
    let body = Array(self.body(of: frame))
    guard body.count >= 15, body[5] == 3, Set([body[7], body[10], body[13]]).count > 1 else { return false }
    if segments.contains(where: { $0.marker == 0xE0 && self.body(of: $0).starts(with: "JFIF\0".utf8) }) { return false }
    let adobe = segments.last { $0.marker == 0xEE && self.body(of: $0).starts(with: "Adobe".utf8) }
    if let adobe, adobe.body.count >= 12 { return bytes[adobe.body.lowerBound + 11] == 0 }
    return [body[6], body[9], body[12]].elementsEqual("RGB".utf8)
  }

  /// The same picture, of nothing but what it is made of.
  package var essential: [UInt8] {
    guard segments.contains(where: { !isEssential($0) }) else { return bytes }
    return segments.reduce(into: [0xFF, 0xD8]) { result, segment in
      if isEssential(segment) { result += bytes[segment.range] }
    }
  }

  private func isEssential(_ segment: Segment) -> Bool {
    switch segment.marker {
    // Frames, Huffman and arithmetic tables, quantisers, lines, restarts, scans, the end.
    case 0xC0...0xCF, 0xDB, 0xDC, 0xDD, 0xDA, 0xD9: true
    case 0xE0: body(of: segment).starts(with: "JFIF\0".utf8)
    case 0xE2: body(of: segment).starts(with: "ICC_PROFILE\0".utf8)
    case 0xEE: body(of: segment).starts(with: "Adobe".utf8)
    default: false
    }
  }
}

extension JPEGFile.Segment {
  package var isFrame: Bool {
    switch marker {
    case 0xC4, 0xC8, 0xCC: false
    case 0xC0...0xCF: true
    default: false
    }
  }
}
