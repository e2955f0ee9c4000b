import CFFmpeg
import FileSystem
import FrameBatches
import Glibc
import ISOMedia
import Synchronization

/// Reads the samples of an MP4 with libavformat.
/// It is safe: it owns what it points to, and only its pointers are unsafe.
@safe package final class MP4Reader {
  private let source: ByteReader
  private let library: cff_format
  private let packet: Packet
  private var format: UnsafeMutablePointer<AVFormatContext>?
  private var io: UnsafeMutablePointer<AVIOContext>?

  /// Opens a file. By default, libavformat does not follow references to other files.
  init(_ file: any ByteSource) throws {
    guard MP4SampleBudget.isBearable(file) else {
      throw FFmpegError(function: "avformat_open_input", code: cff_error_invalid_data())
    }
    let source = ByteReader(file)
    self.source = source
    library = try FormatLibrary.library.functions()
    packet = try Packet()
    let bufferSize: Int32 = 32_768
    let buffer = try unsafe allocated("av_malloc", av_malloc(Int(bufferSize)))
    unsafe io = library.avio_alloc_context(
      buffer.assumingMemoryBound(to: UInt8.self), bufferSize, 0, Unmanaged.passUnretained(source).toOpaque(),
      { source, target, size in unsafe ByteReader.from(source).read(target, size) }, nil,
      { source, offset, origin in unsafe ByteReader.from(source).seek(offset, origin) })
    unsafe format = library.avformat_alloc_context()
    guard let format = unsafe format, let io = unsafe io else {
      throw FFmpegError(function: "avio_alloc_context", code: cff_error_enomem())
    }
    unsafe format.pointee.pb = io
    try unsafe check(
      "avformat_open_input", library.avformat_open_input(&self.format, nil, library.av_find_input_format("mov"), nil))
  }

  deinit {
    unsafe library.avformat_close_input(&format)
    if let io = unsafe io { unsafe av_free(io.pointee.buffer) }
    unsafe library.avio_context_free(&io)
  }

  /// The longest track's duration. `AVFormatContext.duration` is unset from FFmpeg 6.1 on until packets are read.
  var durationUs: Int64 {
    unsafe (0..<trackCount).lazy.map { unsafe self.stream($0).pointee }.filter { unsafe $0.duration != cff_no_pts() }
      .map { unsafe av_rescale_q($0.duration, $0.time_base, AVRational(num: 1, den: 1_000_000)) }.max() ?? 0
  }

  var trackCount: Int { unsafe Int(format?.pointee.nb_streams ?? 0) }

  private func stream(_ track: Int) -> UnsafeMutablePointer<AVStream> {
    precondition((0..<trackCount).contains(track))
    return unsafe format!.pointee.streams[track]!
  }

  /// A track's codec and its configuration. The pointer is valid as long as the reader.
  func parameters(of track: Int) -> UnsafePointer<AVCodecParameters> {
    unsafe UnsafePointer(stream(track).pointee.codecpar)
  }

  func codec(of track: Int) -> AVCodecID { unsafe parameters(of: track).pointee.codec_id }

  /// The units of a track's times, in seconds.
  func timeBase(of track: Int) -> (numerator: Int64, denominator: Int64) {
    let base = unsafe stream(track).pointee.time_base
    return (Int64(base.num), Int64(base.den))
  }

  /// A track's duration in its units; nil if it is unknown.
  func duration(of track: Int) -> Int64? {
    let duration = unsafe stream(track).pointee.duration
    return duration == cff_no_pts() ? nil : duration
  }

  /// The clockwise rotation of a track's pictures in quarter turns; nil if they are mirrored or turned by another angle.
  func quarterTurns(of track: Int) -> Int? {
    guard let matrix = unsafe withUnsafePointer(to: library, { unsafe cff_display_matrix($0, stream(track)) }) else {
      return 0
    }
    let degrees = unsafe av_display_rotation_get(matrix)
    let isMirrored = unsafe Int64(matrix[0]) * Int64(matrix[4]) < Int64(matrix[1]) * Int64(matrix[3])
    guard !isMirrored, degrees.isFinite, degrees.truncatingRemainder(dividingBy: 90) == 0 else { return nil }
    return (4 - Int(degrees / 90) % 4) % 4
  }

  /// The width of a track's pixels to their height; 0:1 if it is unknown.
  func pixelAspect(of track: Int) -> AVRational {
    unsafe library.av_guess_sample_aspect_ratio(format, stream(track), nil)
  }

  /// The file's `creation_time`, as it is written.
  var creationTime: String? {
    guard let entry = unsafe av_dict_get(format?.pointee.metadata, "creation_time", nil, 0) else { return nil }
    return unsafe String(cString: entry.pointee.value)
  }

  /// Seeks to the key frame that is decoded at `dts`.
  func seek(toKeyFrameAt dts: Int64, of track: Int) throws(FFmpegError) {
    try unsafe check("av_seek_frame", library.av_seek_frame(format, Int32(track), dts, AVSEEK_FLAG_BACKWARD))
  }

  /// The `avcC` or `av1C` of a track; nil if there is no such track, or if it is neither H.264 nor AV1.
  func configuration(of track: Int) -> [UInt8]? {
    guard (0..<trackCount).contains(track), case let parameters = unsafe parameters(of: track).pointee,
      unsafe [AV_CODEC_ID_H264, AV_CODEC_ID_AV1].contains(parameters.codec_id)
    else { return nil }
    return unsafe Array(UnsafeBufferPointer(start: parameters.extradata, count: Int(parameters.extradata_size)))
  }

  /// The colours in the sample description of a track; nil if it has none. FFmpeg has the numbers of ISO/IEC 23091-2.
  func colour(of track: Int) -> VideoColour? {
    guard (0..<trackCount).contains(track), case let parameters = unsafe parameters(of: track).pointee,
      unsafe parameters.color_primaries != AVCOL_PRI_UNSPECIFIED || parameters.color_trc != AVCOL_TRC_UNSPECIFIED
        || parameters.color_space != AVCOL_SPC_UNSPECIFIED
    else { return nil }
    return unsafe VideoColour(
      primaries: Int(parameters.color_primaries.rawValue), transfer: Int(parameters.color_trc.rawValue),
      matrix: Int(parameters.color_space.rawValue), isFullRange: parameters.color_range == AVCOL_RANGE_JPEG)
  }

  /// The parameter sets of the first track; nil if they are not as we write them.
  var parameterSets: ParameterSets? {
    configuration(of: 0).flatMap { unsafe $0.withUnsafeBufferPointer { unsafe ParameterSets(configuration: $0) } }
  }

  /// The `codecs` parameter of the first track; nil if it is neither H.264 as we write it nor AV1, as archives of earlier versions have it.
  var codec: String? { parameterSets?.codec ?? configuration(of: 0).flatMap { AV1Record($0)?.codec } }

  /// A sample, valid until the next one is read. It is safe: its packet is that of its reader, which its users keep.
  @safe struct ReadSample {
    let packet: UnsafePointer<AVPacket>

    var track: Int { unsafe Int(packet.pointee.stream_index) }
    var pts: Int64 { unsafe packet.pointee.pts }
    var dts: Int64 { unsafe packet.pointee.dts }
    var duration: Int64 { unsafe packet.pointee.duration }
    var isKey: Bool { unsafe cff_packet_is_key(packet) != 0 }
    /// Whether other samples need it, but players do not show it.
    var isDiscarded: Bool { unsafe cff_packet_is_discarded(packet) != 0 }
    var bytes: UnsafeBufferPointer<UInt8> {
      unsafe UnsafeBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size))
    }

    /// The decoder's new configuration from this sample on; nil if it does not change.
    var configuration: UnsafeBufferPointer<UInt8>? {
      var size = 0
      guard let start = unsafe av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, &size), size > 0 else {
        return nil
      }
      return unsafe UnsafeBufferPointer(start: start, count: size)
    }
  }

  /// Reads the next sample of any track; nil at the end.
  func next() throws -> ReadSample? {
    unsafe av_packet_unref(packet.pointer)
    let status = unsafe library.av_read_frame(format, packet.pointer)
    if status == cff_error_eof() { return nil }
    try check("av_read_frame", status)
    return unsafe ReadSample(packet: packet.pointer)
  }
}

/// The read position of libavformat in a source.
private final class ByteReader {
  private let source: any ByteSource
  private var position = 0

  init(_ source: any ByteSource) { self.source = source }

  static func from(_ pointer: UnsafeMutableRawPointer?) -> ByteReader {
    // `MP4Reader` sets the pointer and owns the object; it is never nil.
    unsafe Unmanaged<ByteReader>.fromOpaque(pointer!).takeUnretainedValue()
  }

  func read(_ target: UnsafeMutablePointer<UInt8>?, _ size: Int32) -> Int32 {
    let wanted = min(Int(size), source.count - position)
    guard wanted > 0, let target = unsafe target else { return cff_error_eof() }
    let count = unsafe source.read(at: position, into: UnsafeMutableRawBufferPointer(start: target, count: wanted))
    guard count != 0 else { return cff_error_eof() }
    guard count > 0 else { return Int32(-EIO) }
    position += count
    return Int32(count)
  }

  /// - Parameter origin: `SEEK_SET` or `AVSEEK_SIZE`; avio_seek and avio_size ask for nothing else.
  func seek(_ offset: Int64, _ origin: Int32) -> Int64 {
    switch origin & ~AVSEEK_FORCE {
    case cff_seek_size(): return Int64(source.count)
    case SEEK_SET where (0...Int64(source.count)).contains(offset):
      position = Int(offset)
      return offset
    default: return -1
    }
  }
}
