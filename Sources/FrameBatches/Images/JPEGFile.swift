// Parses a JPEG into its segments (ITU-T T.81, B.1.1); all other code uses them. Only segments that are needed for the picture
// reach libavcodec, which takes some programs' comments for instructions, and unpacks EXIF to gigabytes of text.

import Glibc

package struct JPEGFile {
  package struct Segment {
    /// The marker's second byte.
    package let marker: UInt8
    /// The bytes from the marker to the end of the body; in a scan, to the end of the coded data.
    package let range: Range<Int>
    package let body: Range<Int>

    package var isFrame: Bool { 0xC0...0xCF ~= marker && marker != 0xC4 && marker != 0xC8 && marker != 0xCC }
  }

  package let bytes: [UInt8]
  /// The segments up to the end of the image, or to the last complete one.
  package let segments: [Segment]

  /// Returns nil when the file has other bytes in the place of a segment.
  package init?(_ bytes: [UInt8]) {
    guard bytes.starts(with: [0xFF, 0xD8]) else { return nil }
    var segments: [Segment] = []
    var offset = 2
    reading: while offset + 1 < bytes.count {
      guard bytes[offset] == 0xFF else { return nil }
      let marker = bytes[offset + 1]
      switch marker {
      case 0xFF: offset += 1  // fill byte
      case 0x01, 0xD0...0xD7: offset += 2  // no body
      case 0xD9:
        segments.append(Segment(marker: marker, range: offset..<offset + 2, body: offset..<offset))
        break reading
      case 0xC0...0xCF, 0xDA...0xFE:
        let length = offset + 3 < bytes.count ? bytes[offset + 2..<offset + 4].bigEndian : 0
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

  /// Returns the offset of the next marker that is neither a stuffed byte nor a restart marker.
  private static func endOfCodedData(in bytes: [UInt8], from start: Int) -> Int {
    unsafe bytes.withUnsafeBufferPointer { file in
      var offset = start
      while offset + 1 < file.count {
        guard let found = unsafe memchr(file.baseAddress! + offset, 0xFF, file.count - 1 - offset) else { break }
        offset = unsafe UnsafePointer(found.assumingMemoryBound(to: UInt8.self)) - file.baseAddress!
        switch unsafe file[offset + 1] {
        case 0x00, 0x01, 0xD0...0xD7: offset += 2
        case 0xFF: offset += 1
        default: return offset
        }
      }
      return file.count
    }
  }

  package func body(of segment: Segment) -> ArraySlice<UInt8> { bytes[segment.body] }

  /// The first frame header (B.2.2).
  private var frame: Segment? {
    segments.first { $0.isFrame }.flatMap { $0.body.count >= 6 ? $0 : nil }
  }

  package var size: PixelSize? {
    frame.map { frame in
      let start = frame.body.lowerBound
      return PixelSize(width: bytes[start + 3..<start + 5].bigEndian, height: bytes[start + 1..<start + 3].bigEndian)
    }
  }

  /// The reason to refuse the file, whatever else it contains: libavcodec does not support it, or shows it too dark.
  package var reasonToRefuse: String? {
    guard let frame else { return "invalid data" }
    // Far more scans than any picture has: the decoder writes the whole picture in each.
    guard segments.count(where: { $0.marker == 0xDA }) <= 500 else { return "more than 500 scans" }
    switch frame.marker {
    case 0xC5...0xC7, 0xCD...0xCF: return "a hierarchical JPEG is not supported"
    case 0xC9...0xCB: return "a JPEG with arithmetic coding is not supported"
    default:
      let bits = bytes[frame.body.lowerBound]
      guard bits == 8 else { return "a JPEG of \(bits) bits a sample, not 8, is not supported" }
      return isSubsampledRGB(frame) ? "a JPEG of red, green and blue in different resolutions is not supported" : nil
    }
  }

  /// Whether libavcodec would take an RGB picture for YCbCr. As in libjpeg, JFIF is not RGB; then Adobe's segment decides, and
  /// then the names of the components.
  private func isSubsampledRGB(_ frame: Segment) -> Bool {
    let body = Array(self.body(of: frame))
    guard body.count >= 15, body[5] == 3, Set([body[7], body[10], body[13]]).count > 1 else { return false }
    if segments.contains(where: { $0.marker == 0xE0 && self.body(of: $0).starts(with: "JFIF\0".utf8) }) { return false }
    let adobe = segments.last { $0.marker == 0xEE && self.body(of: $0).starts(with: "Adobe".utf8) }
    if let adobe, adobe.body.count >= 12 { return bytes[adobe.body.lowerBound + 11] == 0 }
    return [body[6], body[9], body[12]].elementsEqual("RGB".utf8)
  }

  /// The file without the segments that the picture does not need.
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
