// Decodes the PNGs that recorders write, 8-bit RGB and RGBA, four times as fast as libavcodec. It never refuses a file: it leaves
// all other kinds, and everything unusual or damaged, to libavcodec. It also reads a stream with a Huffman code that zlib, and so
// libavcodec, refuses, if all checksums and the length are right.

import CDeflate
import CFFmpeg
import CPixels
import FrameBatches

/// A decoder of plain PNGs. Not thread-safe: use one for each thread. It is memory-safe: it owns its decompressor.
@safe final class PNGDecoder {
  private let limits: Limits
  private let inflater = unsafe libdeflate_alloc_decompressor()
  /// The compressed pixels of a file that has them in several chunks. Its memory is reused.
  private var joined: [UInt8] = []

  init(limits: Limits) { self.limits = limits }

  deinit { unsafe libdeflate_free_decompressor(inflater) }

  /// Decodes a whole and plain file, to the picture that libavcodec would make of it if it read the stream.
  ///
  /// - Parameters:
  ///   - file: a PNG without other chunks than the essential ones.
  ///   - size: the picture's size, which is within the limits; it bounds the memory.
  /// - Returns: nil when libavcodec has to decide about the file.
  func decode(_ file: [UInt8], size: PixelSize) -> FrameBuffer? {
    guard let inflater = unsafe inflater, let png = PlainPNG(file), png.size == size, png.isAllowedByLibavcodec,
      let result = try? FrameBuffer(),
      let buffer = unsafe av_buffer_alloc(size.height * png.rowBytes + Int(AV_INPUT_BUFFER_PADDING_SIZE))
    else { return nil }
    let frame = unsafe result.frame
    // The rows stay where they are unpacked, each behind the byte of its filter.
    unsafe frame.pointee.buf.0 = buffer
    unsafe frame.pointee.data.0 = buffer.pointee.data + 1
    unsafe frame.pointee.linesize.0 = Int32(png.rowBytes)
    (result.width, result.height) = (size.width, size.height)
    result.format = png.hasAlpha ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24
    result.colourRange = AVCOL_RANGE_JPEG
    guard unsafe unpack(png, of: file, inflater, to: buffer.pointee.data),
      unsafe cpx_unfilter(buffer.pointee.data, png.rowBytes - 1, size.height, png.hasAlpha ? 4 : 3)
    else { return nil }
    if let profile = png.profile {
      guard let probe = try? ImageCodec(.png, limits: limits, nil).decode(Self.probe(of: file[profile])),
        unsafe av_frame_copy_props(frame, probe.frame) >= 0
      else { return nil }
    }
    return result
  }

  /// Unpacks the filtered rows. Returns false unless the stream has exactly as many bytes, the right checksum, and no byte behind it.
  private func unpack(
    _ png: PlainPNG, of file: [UInt8], _ inflater: OpaquePointer, to start: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    let size = png.size.height * png.rowBytes
    // Readers of the last row may read beyond it.
    unsafe (start + size).update(repeating: 0, count: Int(AV_INPUT_BUFFER_PADDING_SIZE))
    func unpack(_ stream: UnsafeBufferPointer<UInt8>) -> Bool {
      // deflate with the largest window, as every encoder of screenshots writes it.
      guard unsafe stream.first == 0x78 else { return false }
      var read = 0
      let status = unsafe libdeflate_zlib_decompress_ex(
        inflater, stream.baseAddress, stream.count, start, size, &read, nil)
      return status == LIBDEFLATE_SUCCESS && read == stream.count
    }
    if png.data.count == 1 {
      return unsafe file.withUnsafeBufferPointer { unsafe unpack(UnsafeBufferPointer(rebasing: $0[png.data[0]])) }
    }
    joined.removeAll(keepingCapacity: true)
    // Growing by doubling would take three times the memory, and leave holes in it.
    joined.reserveCapacity(png.data.reduce(0) { $0 + $1.count })
    for part in png.data { joined.append(contentsOf: file[part]) }
    return unsafe joined.withUnsafeBufferPointer(unpack)
  }

  /// Returns a small picture with the same colour profile. libavcodec alone decides about profiles, and unpacks them.
  private static func probe(of profile: ArraySlice<UInt8>) -> [UInt8] {
    // Behind the signature and IHDR.
    Array(WarmUp.png[..<33] + profile + WarmUp.png[33...])
  }
}

/// The structure of a PNG that has only IHDR, at most one iCCP, then IDAT and IEND, with the right checksums, and that is 8-bit
/// RGB or RGBA without interlacing.
private struct PlainPNG {
  let size: PixelSize
  let hasAlpha: Bool
  private(set) var profile: Range<Int>?
  /// The bodies of IDAT, at least one, none empty.
  private(set) var data: [Range<Int>] = []

  /// The bytes of a row, and of its filter.
  var rowBytes: Int { size.width * (hasAlpha ? 4 : 3) + 1 }

  /// Whether libavcodec accepts the size, its width rounded up.
  var isAllowedByLibavcodec: Bool {
    let (width, height) = (UInt32(clamping: (size.width + 63) / 64 * 64), UInt32(clamping: size.height))
    return av_image_check_size2(width, height, .max, AV_PIX_FMT_NONE, 0, nil) >= 0
  }

  init?(_ file: [UInt8]) {
    let header = ImageChunk.chunks(of: file, .png, from: 8).first { _ in true }
    guard let header, header.name == "IHDR", header.size == 13, header.isIntact(in: file), let body = header.body
    else { return nil }
    size = PixelSize(width: body.prefix(4).bigEndian, height: body.dropFirst(4).prefix(4).bigEndian)
    guard size.width > 0, size.height > 0 else { return nil }
    // Depth, kind of colour, compression, filters, interlacing.
    switch Array(body.suffix(5)) {
    case [8, 2, 0, 0, 0]: hasAlpha = false
    case [8, 6, 0, 0, 0]: hasAlpha = true
    default: return nil
    }
    for chunk in ImageChunk.chunks(of: file, .png, from: header.range.upperBound) {
      guard chunk.isIntact(in: file), let body = chunk.body else { return nil }
      switch chunk.name {
      case "iCCP" where profile == nil && data.isEmpty: profile = chunk.range
      case "IDAT" where chunk.size > 0: data.append(body.indices)
      case "IEND" where chunk.size == 0 && !data.isEmpty && chunk.range.upperBound == file.count: return
      default: return nil
      }
    }
    return nil
  }
}

extension ImageChunk {
  /// Whether a chunk of a PNG is whole, with the right checksum.
  func isIntact(in file: [UInt8]) -> Bool {
    guard range.count == 12 + size else { return false }
    let checksum = unsafe file.withUnsafeBufferPointer {
      unsafe libdeflate_crc32(0, $0.baseAddress! + range.lowerBound + 4, 4 + size)
    }
    return Int(checksum) == file[range.suffix(4)].bigEndian
  }
}
