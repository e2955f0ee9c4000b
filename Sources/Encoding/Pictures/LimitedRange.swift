// Segments have limited range: black is 16 and white 235, chroma 16 to 240 (ITU-R BT.601). Every player shows it correctly. Images
// are painted and subsampled in JFIF's full range, and converted last.

import CFFmpeg

extension FrameBuffer {
  /// Maps planar 4:2:0 of full range to limited range, in place, each sample to the nearest.
  func limitRange() throws(FFmpegError) {
    try makeWritable()
    for index in 0..<3 {
      let (start, stride) = unsafe plane(index)
      let shift = index == 0 ? 0 : 1
      let (columns, rows) = ((width + shift) >> shift, (height + shift) >> shift)
      for row in 0..<rows { unsafe Self.limit(start + row * stride, columns, isLuma: index == 0) }
    }
    format = AV_PIX_FMT_YUV420P
    colourRange = AVCOL_RANGE_MPEG
  }

  /// Whether the picture has one of the grey formats that HEVC and AV1 decode to.
  var isGreyOfVideo: Bool { [AV_PIX_FMT_GRAY8, AV_PIX_FMT_GRAY10LE, AV_PIX_FMT_GRAY12LE].contains(format) }

  /// Returns a grey picture of limited range in full range, each sample to the nearest, in the same format. Light outside the range is
  /// clipped.
  func greyOfFullRange() throws(FFmpegError) -> FrameBuffer {
    precondition(isGreyOfVideo)
    let depth = sampleDepth
    let result = try FrameBuffer(width: width, height: height, format: format)
    let (from, to) = unsafe (plane(0), result.plane(0))
    let (unit, maximum) = (1 << (depth - 8), 1 << depth - 1)
    let full = (0...maximum).map { sample in
      UInt16(min(max(0, ((sample - 16 * unit) * maximum + 219 * unit / 2) / (219 * unit)), maximum))
    }
    for row in 0..<height {
      let (line, target) = unsafe (UnsafeRawPointer(from.start + row * from.stride), to.start + row * to.stride)
      for column in 0..<width {
        if depth == 8 {
          unsafe target[column] = UInt8(full[Int(line.load(fromByteOffset: column, as: UInt8.self))])
        } else {
          let sample = unsafe Int(line.load(fromByteOffset: 2 * column, as: UInt16.self))
          unsafe UnsafeMutableRawPointer(target).storeBytes(
            of: full[min(sample, maximum)], toByteOffset: 2 * column, as: UInt16.self)
        }
      }
    }
    return result
  }

  /// Returns a sample of full range in limited range.
  static func limited(_ sample: UInt8, isLuma: Bool) -> UInt8 {
    var sample = sample
    unsafe limit(&sample, 1, isLuma: isLuma)
    return sample
  }

  private static func limit(_ samples: UnsafeMutablePointer<UInt8>, _ count: Int, isLuma: Bool) {
    if isLuma {
      unsafe scale(samples, count, by: 219, offset: 16 * 255)
    } else {
      unsafe scale(samples, count, by: 224, offset: 128 * (255 - 224))
    }
  }

  /// Makes each sample `(factor × sample + offset) / 255`, rounded. In 16 bits, which the compiler turns into vectors.
  @inline(__always)
  private static func scale(_ samples: UnsafeMutablePointer<UInt8>, _ count: Int, by factor: UInt16, offset: UInt16) {
    for index in 0..<count {
      // Divides by 255: exact up to 65 535 - 255.
      let sum = unsafe UInt16(samples[index]) &* factor &+ (offset &+ 128)
      unsafe samples[index] = UInt8(truncatingIfNeeded: (sum &+ (sum &>> 8)) &>> 8)
    }
  }
}
