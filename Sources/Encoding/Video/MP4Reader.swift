import CFFmpeg
import FileSystem
import FrameBatches
import Glibc
import ISOMedia
import Synchronization

/// libavformat's demuxer over an MP4.
package final class MP4Reader {
  private let source: ByteReader
  private let library: cff_format
  private let packet: Packet
  private var format: UnsafeMutablePointer<AVFormatContext>?
  private var io: UnsafeMutablePointer<AVIOContext>?

  /// - Parameter bytes: must outlive the reader.
  convenience init(_ bytes: UnsafeRawBufferPointer) throws { try self.init(MemoryBytes(bytes)) }

  /// libavformat does not follow references to other files: its default.
  init(_ file: any ByteSource) throws {
    guard MP4SampleBudget.isBearable(file) else {
      throw FFmpegError(function: "avformat_open_input", code: cff_error_invalid_data())
    }
    let source = ByteReader(file)
    self.source = source
    library = try FormatLibrary.functions()
    packet = try Packet()
    let bufferSize: Int32 = 32_768
    let buffer = try allocated("av_malloc", av_malloc(Int(bufferSize)))
    io = library.avio_alloc_context(
      buffer.assumingMemoryBound(to: UInt8.self), bufferSize, 0, Unmanaged.passUnretained(source).toOpaque(),
      { source, target, size in ByteReader.from(source).read(target, size) }, nil,
      { source, offset, origin in ByteReader.from(source).seek(offset, origin) })
    format = library.avformat_alloc_context()
    guard let format, let io else { throw FFmpegError(function: "avio_alloc_context", code: cff_error_enomem()) }
    format.pointee.pb = io
    try check(
      "avformat_open_input", library.avformat_open_input(&self.format, nil, library.av_find_input_format("mov"), nil))
  }

  deinit {
    library.avformat_close_input(&format)
    if let io { av_free(io.pointee.buffer) }
    library.avio_context_free(&io)
  }

  /// The longest track's duration. `AVFormatContext.duration` is unset from FFmpeg 6.1 on until packets are read.
  var durationUs: Int64 {
    (0..<trackCount).lazy.map { self.stream($0).pointee }.filter { $0.duration != cff_no_pts() }
      .map { av_rescale_q($0.duration, $0.time_base, AVRational(num: 1, den: 1_000_000)) }.max() ?? 0
  }

  var trackCount: Int { Int(format?.pointee.nb_streams ?? 0) }

  private func stream(_ track: Int) -> UnsafeMutablePointer<AVStream> {
    precondition((0..<trackCount).contains(track))
    return format!.pointee.streams[track]!
  }

  /// How a track's samples are to be decoded; valid as long as the reader is.
  func parameters(of track: Int) -> UnsafePointer<AVCodecParameters> { UnsafePointer(stream(track).pointee.codecpar) }

  /// The units of a track's times, in seconds.
  func timeBase(of track: Int) -> (numerator: Int64, denominator: Int64) {
    let base = stream(track).pointee.time_base
    return (Int64(base.num), Int64(base.den))
  }

  /// How many quarter turns clockwise a track's pictures are to be shown; nil where that is not all: mirrored, or askew.
  package func quarterTurns(of track: Int) -> Int? {
    guard let matrix = withUnsafePointer(to: library, { cff_display_matrix($0, stream(track)) }) else { return 0 }
    let degrees = av_display_rotation_get(matrix)
    let isMirrored = Int64(matrix[0]) * Int64(matrix[4]) < Int64(matrix[1]) * Int64(matrix[3])
    guard !isMirrored, degrees.isFinite, degrees.truncatingRemainder(dividingBy: 90) == 0 else { return nil }
    return (4 - Int(degrees / 90) % 4) % 4
  }

  /// How much wider than high a track's pixels are; 0:1 where it is unknown.
  func pixelAspect(of track: Int) -> AVRational {
    library.av_guess_sample_aspect_ratio(format, stream(track), nil)
  }

  /// The file's `creation_time`, as it is written there.
  package var creationTime: String? {
    guard let entry = av_dict_get(format?.pointee.metadata, "creation_time", nil, 0) else { return nil }
    return String(cString: entry.pointee.value)
  }

  /// Goes to the sample that is decoded at `dts`, a key frame.
  func seek(toKeyFrameAt dts: Int64, of track: Int) throws(FFmpegError) {
    try check("av_seek_frame", library.av_seek_frame(format, Int32(track), dts, AVSEEK_FLAG_BACKWARD))
  }

  /// The decoder configuration of the first track, its `avcC`; nil when that is not H.264.
  package var configuration: [UInt8]? {
    guard trackCount > 0, let parameters = format?.pointee.streams[0]?.pointee.codecpar,
      parameters.pointee.codec_id == AV_CODEC_ID_H264
    else { return nil }
    return Array(
      UnsafeBufferPointer(start: parameters.pointee.extradata, count: Int(parameters.pointee.extradata_size)))
  }

  /// The same, taken apart; nil when it is not as we write it.
  package var parameterSets: ParameterSets? {
    configuration.flatMap { $0.withUnsafeBufferPointer { ParameterSets(configuration: $0) } }
  }

  /// A sample as it was read; `bytes` are valid until the next one is.
  package struct ReadSample {
    /// The decoder's configuration from here on, where it is another one.
    package var configuration: UnsafeBufferPointer<UInt8>? {
      var size = 0
      guard let start = av_packet_get_side_data(packet, AV_PKT_DATA_NEW_EXTRADATA, &size), size > 0 else { return nil }
      return UnsafeBufferPointer(start: start, count: size)
    }

    package let track: Int
    package let pts: Int64
    package let dts: Int64
    package let duration: Int64
    let isKey: Bool
    /// Whether it is only there for others to be decoded.
    let isDiscarded: Bool
    /// With all that belongs to it.
    let packet: UnsafePointer<AVPacket>
    package let bytes: UnsafeBufferPointer<UInt8>
  }

  /// - Returns: nil at the end.
  package func next() throws -> ReadSample? {
    av_packet_unref(packet.pointer)
    let status = library.av_read_frame(format, packet.pointer)
    if status == cff_error_eof() { return nil }
    try check("av_read_frame", status)
    let found = packet.pointer.pointee
    return ReadSample(
      track: Int(found.stream_index), pts: found.pts, dts: found.dts, duration: found.duration,
      isKey: cff_packet_is_key(packet.pointer) != 0, isDiscarded: cff_packet_is_discarded(packet.pointer) != 0,
      packet: UnsafePointer(packet.pointer), bytes: packet.bytes)
  }
}

/// libavformat: what only encodes has no need of it, what reads MP4 files has.
package enum FormatLibrary {
  private static let library = DynamicLibrary("libavformat, which MP4 files are read with") {
    var functions = cff_format()
    return cff_load_format(&functions).map { .failure(.init($0)) } ?? .success(functions)
  }

  /// Loads it, so that a missing library shows early.
  ///
  /// - Throws: ``MissingLibrary``.
  package static func load() throws { _ = try functions() }

  package static func functions() throws -> cff_format { try library.functions() }
}

/// A place in a source, moved as libavformat asks.
private final class ByteReader {
  private let source: any ByteSource
  private var position = 0

  init(_ source: any ByteSource) { self.source = source }

  static func from(_ pointer: UnsafeMutableRawPointer?) -> ByteReader {
    // Set by the reader that owns both; never nil.
    Unmanaged<ByteReader>.fromOpaque(pointer!).takeUnretainedValue()
  }

  func read(_ target: UnsafeMutablePointer<UInt8>?, _ size: Int32) -> Int32 {
    let wanted = min(Int(size), source.count - position)
    guard wanted > 0, let target else { return cff_error_eof() }
    let count = source.read(at: position, into: UnsafeMutableRawBufferPointer(start: target, count: wanted))
    guard count != 0 else { return cff_error_eof() }
    guard count > 0 else { return Int32(-EIO) }
    position += count
    return Int32(count)
  }

  func seek(_ offset: Int64, _ origin: Int32) -> Int64 {
    let target: Int
    switch origin & ~AVSEEK_FORCE {
    case cff_seek_size(): return Int64(source.count)
    case SEEK_SET: target = Int(offset)
    case SEEK_CUR: target = position &+ Int(offset)
    case SEEK_END: target = source.count &+ Int(offset)
    default: return -1
    }
    guard (0...source.count).contains(target) else { return -1 }
    position = target
    return Int64(target)
  }
}
