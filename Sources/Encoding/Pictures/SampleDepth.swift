// Samples of 10 or 12 bits that a camera has stored in 16: they would be shown nearly black.

import CFFmpeg
import FrameBatches

extension FrameBuffer {
  /// The samples of a pixel of 16 bits, without alpha, and with it; nil for other formats.
  private var wideSamples: (colours: Int, all: Int, isBigEndian: Bool)? {
    switch format {
    case AV_PIX_FMT_GRAY16LE, AV_PIX_FMT_GRAY16BE: (1, 1, format == AV_PIX_FMT_GRAY16BE)
    case AV_PIX_FMT_YA16LE, AV_PIX_FMT_YA16BE: (1, 2, format == AV_PIX_FMT_YA16BE)
    case AV_PIX_FMT_RGB48LE, AV_PIX_FMT_RGB48BE: (3, 3, format == AV_PIX_FMT_RGB48BE)
    case AV_PIX_FMT_RGBA64LE, AV_PIX_FMT_RGBA64BE: (3, 4, format == AV_PIX_FMT_RGBA64BE)
    default: nil
    }
  }

  /// Changes the colours' samples of a picture of 16 bits.
  private func forEachWideSample(_ change: (UInt16) -> UInt16) {
    guard let samples = wideSamples else { return }
    let (start, stride) = unsafe plane(0)
    for row in 0..<height {
      let line = unsafe UnsafeMutableRawPointer(start + row * stride)
      for pixel in 0..<width {
        for channel in 0..<samples.colours {
          let place = 2 * (pixel * samples.all + channel)
          let stored = unsafe line.load(fromByteOffset: place, as: UInt16.self)
          let value = change(samples.isBigEndian ? UInt16(bigEndian: stored) : UInt16(littleEndian: stored))
          unsafe line.storeBytes(
            of: samples.isBigEndian ? value.bigEndian : value.littleEndian, toByteOffset: place, as: UInt16.self)
        }
      }
    }
  }

  /// Scales the samples of a picture of 16 bits to the whole range.
  ///
  /// - Parameters:
  ///   - bits: the bits that the user states; they override those of the file.
  ///   - stated: the bits that the file states.
  /// - Returns: the highest sample of a picture that is not scaled; nil for others, and for pictures of other depths.
  func scaleSamples(bits: Int?, stated: @autoclosure () -> StatedDepth?) throws(FFmpegError) -> Int? {
    guard wideSamples != nil else { return nil }
    try makeWritable()
    var (highest, used): (UInt16, UInt16) = (0, 0)
    forEachWideSample { sample in
      highest = max(highest, sample)
      used |= sample
      return sample
    }
    guard let bits = bits ?? stated()?.bits(highest: highest, used: used), bits < 16 else { return Int(highest) }
    let maximum = 1 << bits - 1
    forEachWideSample { UInt16((min(Int($0), maximum) * 65_535 + maximum / 2) / maximum) }
    return nil
  }
}

/// The bits of a sample of 16 bits that a file says to be used, 8 to 15.
enum StatedDepth {
  /// A TIFF's highest sample.
  case highest(bits: Int)
  /// A PNG's significant bits, which are the upper ones by its specification (PNG, third edition, 11.3.2.7).
  case significant(bits: Int)

  /// Returns the bits of the samples; nil if the whole range is used.
  ///
  /// - Parameters:
  ///   - highest: the highest sample.
  ///   - used: the bits that are set in any sample.
  fileprivate func bits(highest: UInt16, used: UInt16) -> Int? {
    switch self {
    case .highest(let bits): highest < 1 << bits ? bits : nil
    // Rounding sets the lowest bit at most, where a file keeps to the specification.
    case .significant(let bits): highest < 1 << bits && used & (1 << (16 - bits) - 1) > 1 ? bits : nil
    }
  }

  /// - Parameter sample: the highest sample; only full ranges count: some programs state the brightest pixel.
  init?(highest sample: Int?) {
    guard let sample, (255...32_767).contains(sample), sample & (sample + 1) == 0 else { return nil }
    self = .highest(bits: (sample + 1).trailingZeroBitCount)
  }

  /// - Parameter file: a PNG of 16 bits.
  init?(ofPNG file: [UInt8]) {
    guard file.count > 33, file[24] == 16 else { return nil }
    for chunk in ImageChunk.chunks(of: file, .png, from: 33) {
      if ["IDAT", "PLTE"].contains(chunk.name) { return nil }
      if chunk.name == "sBIT", let bits = chunk.body?.max(), (8...15).contains(bits), chunk.isIntact(in: file) {
        self = .significant(bits: Int(bits))
        return
      }
    }
    return nil
  }
}
