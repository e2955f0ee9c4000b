// Finds the parts of a picture that a video decoder has not written: a slice may be missing, and no error tells it. Each block of
// 16 by 16 pixels, the smallest that HEVC codes as one, gets a mark in its middle before the picture is decoded.

import CFFmpeg
import Glibc

enum UnwrittenBlocks {
  /// Eight bytes that no picture has by chance.
  private static let pattern: [UInt8] = [0x5A, 0xC3, 0x17, 0x88, 0xE1, 0x3C, 0x96, 0x2D]
  /// Pixels of a side. Filters change up to three pixels along the edges of a block.
  private static let block = 16

  static func mark(in frame: UnsafePointer<AVFrame>) {
    _ = unsafe contains(in: frame) { place in
      unsafe memcpy(place, pattern, pattern.count)
      return false
    }
  }

  static func areFound(in frame: UnsafePointer<AVFrame>) -> Bool {
    unsafe contains(in: frame) { unsafe memcmp($0, pattern, pattern.count) == 0 }
  }

  /// Calls a function with the place of each mark, until it returns true.
  private static func contains(
    in frame: UnsafePointer<AVFrame>, _ body: (UnsafeMutableRawPointer) -> Bool
  ) -> Bool {
    guard let luma = unsafe frame.pointee.data.0,
      let format = unsafe av_pix_fmt_desc_get(AVPixelFormat(frame.pointee.format))
    else { return false }
    let sampleBytes = unsafe format.pointee.comp.0.depth > 8 ? 2 : 1
    let (width, height, stride) = unsafe (
      Int(frame.pointee.width), Int(frame.pointee.height), Int(frame.pointee.linesize.0)
    )
    for y in Swift.stride(from: block / 2, to: height, by: block) {
      // The mark is in the block, and in the picture.
      for x in Swift.stride(from: block / 4, through: width - pattern.count, by: block) {
        if unsafe body(luma + y * stride + x * sampleBytes) { return true }
      }
    }
    return false
  }
}
