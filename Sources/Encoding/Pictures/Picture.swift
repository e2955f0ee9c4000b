// Decoded pixels on their way to the encoder: planar 4:2:0, 8 bits, limited range, the matrix of ITU-R BT.601, chroma sited in
// the middle. But for the range that is what a JPEG screenshot is made of.

import CFFmpeg
import FileSystem
import FrameBatches

/// A picture, immutable once made, with even sides as 4:2:0 needs them.
package final class Picture {
  /// The picture as captured, in pixels.
  package let width: Int
  package let height: Int
  private let buffer: FrameBuffer
  private var frame: UnsafeMutablePointer<AVFrame> { buffer.frame }

  /// The coded size: the same, or one more, the added column or row repeating the edge.
  package var codedWidth: Int { Int(frame.pointee.width) }
  package var codedHeight: Int { Int(frame.pointee.height) }

  /// Takes a 4:2:0 frame over.
  ///
  /// - Parameter source: `yuv420p`, limited range.
  package init(adopting source: FrameBuffer) throws(FFmpegError) {
    width = source.width
    height = source.height
    if source.hasRoom { source.extendToEven() }
    let isEven = source.width % 2 == 0 && source.height % 2 == 0
    buffer = try (isEven ? source : Picture.padded(source)).reference()
    frame.pointee.format = AV_PIX_FMT_YUV420P.rawValue
    frame.pointee.color_range = AVCOL_RANGE_MPEG
    frame.pointee.pict_type = AV_PICTURE_TYPE_NONE
  }

  /// Planes that a decoder has filled. They stay in their slot until the last reference to them goes; those in slot 0 are copied.
  package init(planes slots: PictureSlots, _ slot: Int, _ layout: PlaneLayout) throws(FFmpegError) {
    (width, height) = (layout.size.width, layout.size.height)
    let (codedWidth, codedHeight) = (width + width % 2, height + height % 2)
    let start = slots.start(of: slot)
    if slot > 0 {
      buffer = try FrameBuffer()
      let owner = Unmanaged.passRetained(slots)
      let reference = av_buffer_create(
        start, slots.size, { Unmanaged<PictureSlots>.fromOpaque($0!).takeRetainedValue().release($1!) },
        owner.toOpaque(), Int32(AV_BUFFER_FLAG_READONLY))
      guard let reference else {
        owner.release()
        throw FFmpegError(function: "av_buffer_create", code: cff_error_enomem())
      }
      slots.take(slot)
      let frame = buffer.frame
      frame.pointee.width = Int32(codedWidth)
      frame.pointee.height = Int32(codedHeight)
      frame.pointee.format = AV_PIX_FMT_YUV420P.rawValue
      frame.pointee.buf.0 = reference
      let planes = layout.planes.map { (start + $0.offset, Int32($0.stride)) }
      frame.pointee.data = (planes[0].0, planes[1].0, planes[2].0, nil, nil, nil, nil, nil)
      frame.pointee.linesize = (planes[0].1, planes[1].1, planes[2].1, 0, 0, 0, 0, 0)
    } else {
      buffer = try FrameBuffer(width: codedWidth, height: codedHeight, format: AV_PIX_FMT_YUV420P)
      for (index, source) in layout.planes.enumerated() {
        let plane = buffer.plane(index)
        for row in 0..<source.rows {
          (plane.start + row * plane.stride).update(
            from: start + source.offset + row * source.stride, count: source.columns)
        }
      }
    }
    frame.pointee.color_range = AVCOL_RANGE_MPEG
  }

  /// Puts the planes into memory that others see, unless they are there already.
  package func lay(into space: SharedPictureBuffer) -> PlaneLayout {
    let size = PixelSize(width: width, height: height)
    let (start, memory) = (space.memory.baseAddress!, space.memory)
    if planes.allSatisfy({ (start..<start + memory.count).contains($0.start) }) {
      return PlaneLayout(
        size: size, planes.map { (offset: $0.start - start, stride: $0.stride) }, bytes: space.used)
    }
    let layout = PlaneLayout(withoutGaps: size, used: space.used)
    for ((source, stride), target) in zip(planes, layout.planes) {
      for row in 0..<target.rows {
        (start + target.offset + row * target.stride).update(from: source + row * stride, count: target.columns)
      }
    }
    return layout
  }

  /// Whether it has the same pixels.
  package func looksLike(_ other: Picture) -> Bool {
    if self === other { return true }
    guard (width, height) == (other.width, other.height) else { return false }
    let (own, others) = (planes, other.planes)
    return zip(own, others).enumerated().allSatisfy { index, pair in
      let shift = index == 0 ? 0 : 1
      return (0..<codedHeight >> shift).allSatisfy { row in
        memcmp(pair.0.start + row * pair.0.stride, pair.1.start + row * pair.1.stride, codedWidth >> shift) == 0
      }
    }
  }

  private var planes: [(start: UnsafeMutablePointer<UInt8>, stride: Int)] { (0..<3).map(buffer.plane) }

  /// Lends the frame to a call that keeps its own reference.
  func withFrame<R>(pts: Int64, _ body: (UnsafeMutablePointer<AVFrame>) throws(FFmpegError) -> R) throws(FFmpegError)
    -> R
  {
    frame.pointee.pts = pts
    return try body(frame)
  }

  /// A copy with even sides. Chroma planes already are (odd + 1) / 2 wide; only luma lacks a column or a row.
  private static func padded(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer(
      width: source.width + source.width % 2, height: source.height + source.height % 2, format: AV_PIX_FMT_YUV420P)
    for plane in 0..<3 {
      let shift = plane == 0 ? 0 : 1
      let columns = (source.width + shift) >> shift
      let rows = (source.height + shift) >> shift
      let target = result.plane(plane)
      let origin = source.plane(plane)
      for row in 0..<(result.height >> shift) {
        let line = target.start + row * target.stride
        line.update(from: origin.start + min(row, rows - 1) * origin.stride, count: columns)
        if columns < result.width >> shift { line[columns] = line[columns - 1] }
      }
    }
    return result
  }
}

/// An `AVFrame` with pixels, owned.
package final class FrameBuffer {
  package let frame: UnsafeMutablePointer<AVFrame>
  /// Whether there is memory for another column and row, which is not visible elsewhere; of 4:2:0.
  package var hasRoom = false

  package var width: Int { Int(frame.pointee.width) }
  package var height: Int { Int(frame.pointee.height) }
  package var format: AVPixelFormat { AVPixelFormat(frame.pointee.format) }

  /// An empty frame, for a decoder to fill.
  package init() throws(FFmpegError) {
    frame = try allocated("av_frame_alloc", av_frame_alloc())
  }

  package convenience init(width: Int, height: Int, format: AVPixelFormat) throws(FFmpegError) {
    try self.init()
    frame.pointee.width = Int32(width)
    frame.pointee.height = Int32(height)
    frame.pointee.format = format.rawValue
    try check("av_frame_get_buffer", av_frame_get_buffer(frame, 0))
  }

  deinit {
    var owned: UnsafeMutablePointer<AVFrame>? = frame
    av_frame_free(&owned)
  }

  /// How its YUV is made of RGB. Where a video does not say, what players assume.
  var colours: YUVColours {
    let matrix =
      switch frame.pointee.colorspace {
      case AVCOL_SPC_BT709: SWS_CS_ITU709
      case AVCOL_SPC_BT2020_NCL, AVCOL_SPC_BT2020_CL: SWS_CS_BT2020
      case AVCOL_SPC_SMPTE240M: SWS_CS_SMPTE240M
      case AVCOL_SPC_SMPTE170M, AVCOL_SPC_BT470BG, AVCOL_SPC_FCC: SWS_CS_ITU601
      default: height < 720 ? SWS_CS_ITU601 : SWS_CS_ITU709
      }
    return YUVColours(
      matrix: matrix, isFullRange: frame.pointee.color_range == AVCOL_RANGE_JPEG || format == AV_PIX_FMT_YUVJ420P,
      isChromaCentred: frame.pointee.chroma_location == AVCHROMA_LOC_CENTER)
  }

  /// How the YUV of a still is made of RGB: as JFIF has it, but for WebP, which is limited in range.
  var coloursOfStill: YUVColours {
    let isLimited = frame.pointee.color_range == AVCOL_RANGE_MPEG
    return isLimited ? YUVColours(matrix: SWS_CS_ITU601, isFullRange: false, isChromaCentred: true) : .jfif
  }

  /// Whether it is meant for displays that are brighter than a screenshot's (PQ, HLG).
  var isHighDynamicRange: Bool {
    [AVCOL_TRC_SMPTE2084, AVCOL_TRC_ARIB_STD_B67].contains(frame.pointee.color_trc)
  }

  /// The ICC profile that came with it.
  var colourProfile: [UInt8]? {
    guard let data = av_frame_get_side_data(frame, AV_FRAME_DATA_ICC_PROFILE) else { return nil }
    return Array(UnsafeBufferPointer(start: data.pointee.data, count: data.pointee.size))
  }

  var hasAlpha: Bool {
    guard let descriptor = av_pix_fmt_desc_get(format) else { return false }
    return descriptor.pointee.flags & UInt64(AV_PIX_FMT_FLAG_ALPHA) != 0 || format == AV_PIX_FMT_PAL8
  }

  /// Whether it has no colours, but for a palette's.
  var isGrey: Bool { (av_pix_fmt_desc_get(format)?.pointee.nb_components ?? 3) <= 2 && format != AV_PIX_FMT_PAL8 }

  /// Makes each pixel transparent that is of this grey; RGBA only.
  func makeTransparent(grey: UInt8) {
    precondition(format == AV_PIX_FMT_RGBA)
    let (start, stride) = plane(0)
    for row in 0..<height {
      let line = start + row * stride
      for column in 0..<width where line[4 * column] == grey { line[4 * column + 3] = 0 }
    }
  }

  /// Leaves out columns on the right and rows at the bottom.
  func crop(width: Int, height: Int) {
    precondition(width <= self.width && height <= self.height)
    frame.pointee.width = Int32(width)
    frame.pointee.height = Int32(height)
  }

  /// The same picture as it is to be shown; RGB24 or RGBA only, so that each pixel stays what it is.
  func oriented(_ orientation: Orientation) throws(FFmpegError) -> FrameBuffer {
    guard orientation != .upright else { return self }
    precondition(format == AV_PIX_FMT_RGB24 || format == AV_PIX_FMT_RGBA)
    let size = format == AV_PIX_FMT_RGBA ? 4 : 3
    let isUpright = orientation.quarterTurns % 2 == 0
    let result = try FrameBuffer(width: isUpright ? width : height, height: isUpright ? height : width, format: format)
    let (from, to) = (plane(0), result.plane(0))
    for row in 0..<height {
      for column in 0..<width {
        let across = orientation.isMirrored ? width - 1 - column : column
        let (x, y) =
          switch orientation.quarterTurns {
          case 0: (across, row)
          case 1: (height - 1 - row, across)
          case 2: (width - 1 - across, height - 1 - row)
          default: (row, width - 1 - across)
          }
        (to.start + y * to.stride + size * x).update(
          from: from.start + row * from.stride + size * column, count: size)
      }
    }
    return result
  }

  /// Adds a column or a row that repeats the edge, where a side is odd. Chroma has it already; there must be room.
  fileprivate func extendToEven() {
    let luma = plane(0)
    precondition(hasRoom && format == AV_PIX_FMT_YUV420P && luma.stride >= width + width % 2)
    if width % 2 == 1 {
      for row in 0..<height { luma.start[row * luma.stride + width] = luma.start[row * luma.stride + width - 1] }
      frame.pointee.width += 1
    }
    if height % 2 == 1 {
      let last = luma.start + (height - 1) * luma.stride
      (last + luma.stride).update(from: last, count: width)
      frame.pointee.height += 1
    }
  }

  func makeWritable() throws(FFmpegError) {
    try check("av_frame_make_writable", av_frame_make_writable(frame))
  }

  /// A second frame over the same pixels.
  fileprivate func reference() throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer()
    try check("av_frame_ref", av_frame_ref(result.frame, frame))
    return result
  }

  /// Each plane's first byte and the distance of its rows in bytes; four, where a format has fewer the rest is nil.
  var planes: [(start: UnsafeMutablePointer<UInt8>?, stride: Int)] {
    let data = frame.pointee.data
    let strides = frame.pointee.linesize
    return [
      (data.0, Int(strides.0)), (data.1, Int(strides.1)), (data.2, Int(strides.2)), (data.3, Int(strides.3)),
    ]
  }

  /// One of the planes that the format has; asking for another is a programming error.
  func plane(_ index: Int) -> (start: UnsafeMutablePointer<UInt8>, stride: Int) {
    let plane = planes[index]
    return (plane.start!, plane.stride)
  }
}
