// Decoded pixels for the encoder: planar 4:2:0, 8 bits, limited range, the matrix of ITU-R BT.601, chroma sited in the middle.
// Apart from the range, a JPEG screenshot has this form already.

import CFFmpeg
import FileSystem
import FrameBatches

/// An immutable picture with even sides, as 4:2:0 needs them.
package final class Picture {
  /// The size as captured, in pixels.
  package let width: Int
  package let height: Int
  let buffer: FrameBuffer

  /// The coded size: the same, or one more; the added column or row repeats the edge.
  package var codedWidth: Int { buffer.width }
  package var codedHeight: Int { buffer.height }

  /// Takes ownership of a frame: `yuv420p`, limited range.
  init(adopting source: FrameBuffer) throws(FFmpegError) {
    width = source.width
    height = source.height
    if source.hasRoom { source.extendToEven() }
    let isEven = source.width % 2 == 0 && source.height % 2 == 0
    buffer = isEven ? source : try Picture.padded(source)
    buffer.format = AV_PIX_FMT_YUV420P
    buffer.colourRange = AVCOL_RANGE_MPEG
    unsafe buffer.frame.pointee.pict_type = AV_PICTURE_TYPE_NONE
  }

  /// A picture of planes that a decoder has filled. They stay in their slot until the last reference to them is released;
  /// those in slot 0 are copied.
  init(planes slots: PictureSlots, _ slot: Int, _ layout: PlaneLayout) throws(FFmpegError) {
    (width, height) = (layout.size.width, layout.size.height)
    let shared = try FrameBuffer()
    (shared.width, shared.height) = (width + width % 2, height + height % 2)
    shared.format = AV_PIX_FMT_YUV420P
    let start = unsafe slots.start(of: slot)
    let planes = unsafe layout.planes.map { unsafe (start + $0.offset, Int32($0.stride)) }
    unsafe shared.frame.pointee.data = (planes[0].0, planes[1].0, planes[2].0, nil, nil, nil, nil, nil)
    unsafe shared.frame.pointee.linesize = (planes[0].1, planes[1].1, planes[2].1, 0, 0, 0, 0, 0)
    if slot > 0 {
      let owner = unsafe Unmanaged.passRetained(slots)
      let reference = unsafe av_buffer_create(
        start, slots.size, { unsafe Unmanaged<PictureSlots>.fromOpaque($0!).takeRetainedValue().release($1!) },
        owner.toOpaque(), Int32(AV_BUFFER_FLAG_READONLY))
      guard let reference = unsafe reference else {
        unsafe owner.release()
        throw FFmpegError(function: "av_buffer_create", code: cff_error_enomem())
      }
      slots.take(slot)
      unsafe shared.frame.pointee.buf.0 = reference
      buffer = shared
    } else {
      buffer = try shared.copy(width: shared.width, height: shared.height)
    }
    buffer.colourRange = AVCOL_RANGE_MPEG
  }

  /// Writes the planes into shared memory, unless they were decoded there.
  func lay(into shared: SharedPictureBuffer) -> PlaneLayout {
    let size = PixelSize(width: width, height: height)
    let (start, memory) = unsafe (shared.memory.baseAddress!, shared.memory)
    if unsafe planes.allSatisfy({ unsafe (start..<start + memory.count).contains($0.start) }) {
      return unsafe PlaneLayout(
        size: size, planes.map { unsafe (offset: $0.start - start, stride: $0.stride) }, bytes: shared.used)
    }
    let layout = PlaneLayout(withoutGaps: size, used: shared.used)
    let sources = unsafe planes
    for (index, target) in layout.planes.enumerated() {
      let (source, stride) = unsafe sources[index]
      unsafe av_image_copy_plane(
        start + target.offset, Int32(target.stride), source, Int32(stride), Int32(target.columns), Int32(target.rows))
    }
    return layout
  }

  /// Whether both have the same pixels.
  package func looksLike(_ other: Picture) -> Bool {
    if self === other { return true }
    guard (width, height) == (other.width, other.height) else { return false }
    return unsafe zip(planes, other.planes).enumerated().allSatisfy { index, pair in
      let shift = index == 0 ? 0 : 1
      return (0..<codedHeight >> shift).allSatisfy { row in
        unsafe memcmp(pair.0.start + row * pair.0.stride, pair.1.start + row * pair.1.stride, codedWidth >> shift) == 0
      }
    }
  }

  /// As captured, in pixels.
  var size: PixelSize { PixelSize(width: width, height: height) }

  /// Returns the picture scaled to a maximum length of its sides; itself if it is not larger.
  func fitted(maxSide: Int, with converter: PictureConverter) throws(FFmpegError) -> Picture {
    let fitted = size.fitted(maxSide: maxSide)
    return fitted == size ? self : try Picture(adopting: converter.scaled(coded: buffer, visible: size, to: fitted))
  }

  var planes: [(start: UnsafeMutablePointer<UInt8>, stride: Int)] { unsafe (0..<3).map(buffer.plane) }

  /// Passes the frame to a call that keeps its own reference.
  func withFrame<R>(
    pts: Int64, _ body: (UnsafeMutablePointer<AVFrame>) throws(FFmpegError) -> R
  ) throws(FFmpegError) -> R {
    buffer.pts = pts
    return try unsafe body(buffer.frame)
  }

  private static func padded(_ source: FrameBuffer) throws(FFmpegError) -> FrameBuffer {
    let result = try source.copy(width: source.width + source.width % 2, height: source.height + source.height % 2)
    result.crop(width: source.width, height: source.height)
    result.hasRoom = true
    result.extendToEven()
    return result
  }
}

/// An `AVFrame` with pixels, owned. It is safe: only its pointers and those to its planes are unsafe.
@safe package final class FrameBuffer {
  let frame: UnsafeMutablePointer<AVFrame>
  /// Whether the planes, of 4:2:0, have memory for another column and row, which no other picture uses.
  var hasRoom = false

  /// Pixels. Set them before the planes have memory, or within it.
  package internal(set) var width: Int {
    get { unsafe Int(frame.pointee.width) }
    set { unsafe frame.pointee.width = Int32(newValue) }
  }
  package internal(set) var height: Int {
    get { unsafe Int(frame.pointee.height) }
    set { unsafe frame.pointee.height = Int32(newValue) }
  }
  var size: PixelSize { PixelSize(width: width, height: height) }
  var format: AVPixelFormat {
    get { unsafe AVPixelFormat(frame.pointee.format) }
    set { unsafe frame.pointee.format = newValue.rawValue }
  }
  var colourRange: AVColorRange {
    get { unsafe frame.pointee.color_range }
    set { unsafe frame.pointee.color_range = newValue }
  }
  /// The presentation time in units of the track or the codec.
  var pts: Int64 {
    get { unsafe frame.pointee.pts }
    set { unsafe frame.pointee.pts = newValue }
  }

  init() throws(FFmpegError) { unsafe frame = try allocated("av_frame_alloc", av_frame_alloc()) }

  convenience init(width: Int, height: Int, format: AVPixelFormat) throws(FFmpegError) {
    try self.init()
    (self.width, self.height, self.format) = (width, height, format)
    try unsafe check("av_frame_get_buffer", av_frame_get_buffer(frame, 0))
  }

  deinit {
    var owned: UnsafeMutablePointer<AVFrame>? = unsafe frame
    unsafe av_frame_free(&owned)
  }

  /// How a video's YUV is made of RGB. Where the file does not tell, the values that players assume.
  var colours: YUVColours {
    let matrix =
      switch unsafe frame.pointee.colorspace {
      case AVCOL_SPC_BT709: SWS_CS_ITU709
      case AVCOL_SPC_BT2020_NCL, AVCOL_SPC_BT2020_CL: SWS_CS_BT2020
      case AVCOL_SPC_SMPTE240M: SWS_CS_SMPTE240M
      case AVCOL_SPC_SMPTE170M, AVCOL_SPC_BT470BG, AVCOL_SPC_FCC: SWS_CS_ITU601
      default: height < 720 ? SWS_CS_ITU601 : SWS_CS_ITU709
      }
    // Where a film changes to limited range, libavcodec keeps the pixel format that implies full range.
    let isFullRange =
      switch colourRange {
      case AVCOL_RANGE_JPEG: true
      case AVCOL_RANGE_MPEG: false
      default: format == AV_PIX_FMT_YUVJ420P
      }
    return unsafe YUVColours(
      matrix: matrix, isFullRange: isFullRange,
      isChromaCentred: frame.pointee.chroma_location == AVCHROMA_LOC_CENTER)
  }

  /// How an image's YUV is made of RGB: as in JFIF, except for WebP, which has limited range.
  var coloursOfImage: YUVColours { colourRange == AVCOL_RANGE_MPEG ? .coded : .jfif }

  /// Whether the picture has the form of segments already, as in lossy WebP.
  var isCoded: Bool { format == AV_PIX_FMT_YUV420P && colourRange == AVCOL_RANGE_MPEG }

  /// Whether the picture needs a display of high dynamic range (PQ, HLG).
  var isHighDynamicRange: Bool {
    unsafe [AVCOL_TRC_SMPTE2084, AVCOL_TRC_ARIB_STD_B67].contains(frame.pointee.color_trc)
  }

  /// The ICC profile of the file.
  var colourProfile: [UInt8]? {
    guard let data = unsafe av_frame_get_side_data(frame, AV_FRAME_DATA_ICC_PROFILE) else { return nil }
    return unsafe Array(UnsafeBufferPointer(start: data.pointee.data, count: data.pointee.size))
  }

  var hasAlpha: Bool {
    guard let descriptor = unsafe av_pix_fmt_desc_get(format) else { return false }
    return unsafe descriptor.pointee.flags & UInt64(AV_PIX_FMT_FLAG_ALPHA) != 0 || format == AV_PIX_FMT_PAL8
  }

  /// Whether the format has no colours and no palette.
  var isGrey: Bool {
    unsafe (av_pix_fmt_desc_get(format)?.pointee.nb_components ?? 3) <= 2 && format != AV_PIX_FMT_PAL8
  }

  /// Returns the binary logarithms of the number of columns and rows that share a chroma sample.
  func chromaShifts() throws(FFmpegError) -> (x: Int, y: Int) {
    var (x, y): (Int32, Int32) = (0, 0)
    try unsafe check("av_pix_fmt_get_chroma_sub_sample", av_pix_fmt_get_chroma_sub_sample(format, &x, &y))
    return (Int(x), Int(y))
  }

  /// Makes each pixel of this grey transparent; RGBA only.
  func makeTransparent(grey: UInt8) {
    precondition(format == AV_PIX_FMT_RGBA)
    let (start, stride) = unsafe plane(0)
    for row in 0..<height {
      let line = unsafe start + row * stride
      for column in 0..<width where unsafe line[4 * column] == grey { unsafe line[4 * column + 3] = 0 }
    }
  }

  /// Removes columns on the right and rows at the bottom.
  func crop(width: Int, height: Int) {
    precondition(width <= self.width && height <= self.height)
    (self.width, self.height) = (width, height)
  }

  /// The picture mirrored and turned. RGB24 or RGBA only, whose pixels do not share chroma.
  func oriented(_ orientation: Orientation) throws(FFmpegError) -> FrameBuffer {
    guard orientation != .upright else { return self }
    precondition(format == AV_PIX_FMT_RGB24 || format == AV_PIX_FMT_RGBA)
    let size = format == AV_PIX_FMT_RGBA ? 4 : 3
    let isUpright = orientation.quarterTurns % 2 == 0
    let result = try FrameBuffer(width: isUpright ? width : height, height: isUpright ? height : width, format: format)
    let (from, to) = unsafe (plane(0), result.plane(0))
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
        unsafe (to.start + y * to.stride + size * x).update(
          from: from.start + row * from.stride + size * column, count: size)
      }
    }
    return result
  }

  /// Adds a column or a row that repeats the edge, where a side is odd. Only luma lacks it: chroma planes have (odd + 1) / 2.
  fileprivate func extendToEven() {
    let luma = unsafe plane(0)
    unsafe precondition(hasRoom && format == AV_PIX_FMT_YUV420P && luma.stride >= width + width % 2)
    if width % 2 == 1 {
      for row in 0..<height { unsafe luma.start[row * luma.stride + width] = luma.start[row * luma.stride + width - 1] }
      width += 1
    }
    if height % 2 == 1 {
      let last = unsafe luma.start + (height - 1) * luma.stride
      unsafe (last + luma.stride).update(from: last, count: width)
      height += 1
    }
  }

  func makeWritable() throws(FFmpegError) { try unsafe check("av_frame_make_writable", av_frame_make_writable(frame)) }

  /// A copy of 4:2:0 in a buffer of at least the same size.
  fileprivate func copy(width: Int, height: Int) throws(FFmpegError) -> FrameBuffer {
    let result = try FrameBuffer(width: width, height: height, format: AV_PIX_FMT_YUV420P)
    try unsafe check("av_frame_copy", av_frame_copy(result.frame, frame))
    return result
  }

  /// The first byte of each plane and the distance of its rows in bytes. The list has four entries, nil where a format has fewer.
  var planes: [(start: UnsafeMutablePointer<UInt8>?, stride: Int)] {
    let data = unsafe frame.pointee.data
    let strides = unsafe frame.pointee.linesize
    return unsafe [
      (data.0, Int(strides.0)), (data.1, Int(strides.1)), (data.2, Int(strides.2)), (data.3, Int(strides.3)),
    ]
  }

  /// Returns one of the planes that the format has; any other index is a programming error.
  func plane(_ index: Int) -> (start: UnsafeMutablePointer<UInt8>, stride: Int) {
    let plane = unsafe planes[index]
    return unsafe (plane.start!, plane.stride)
  }
}
