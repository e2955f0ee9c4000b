// Reads a finished segment back with libavformat's demuxer, which knows nothing of how it was made, and compares every
// sample. A segment that a stock reader does not see as we meant it is never published.

import CFFmpeg

enum SegmentCheck {
  /// - Throws: ``SegmentMismatch`` naming the first difference.
  static func compare(_ bytes: [UInt8], with file: MP4File) throws {
    try bytes.withUnsafeBytes { buffer in
      let reader = try MemoryReader(buffer)
      try reader.requireStreams(2)
      try reader.require(reader.durationUs, file.video.reduce(0) { $0 + $1.duration } * 100 / 9, "the duration")
      var expected = [SampleList(file.video), SampleList(file.timing)]
      while let sample = try reader.next() {
        guard expected.indices.contains(sample.stream) else { throw SegmentMismatch("a third track") }
        guard let wanted = expected[sample.stream].popFirst() else { throw SegmentMismatch("one sample too many") }
        try reader.require(sample.pts, wanted.pts, "a sample's start")
        try reader.require(sample.dts, wanted.pts, "a sample's decoding time")
        try reader.require(sample.duration, wanted.duration, "a sample's duration")
        try reader.require(Int64(sample.size), Int64(wanted.size), "a sample's size")
        if sample.stream == 0 { try reader.require(sample.isKey ? 1 : 0, wanted.pts == 0 ? 1 : 0, "the key frame") }
      }
      guard expected.allSatisfy(\.isEmpty) else { throw SegmentMismatch("a sample is missing") }
    }
  }
}

struct SegmentMismatch: Error, CustomStringConvertible {
  let description: String

  init(_ what: String) { description = "the written segment does not read back as it was meant: \(what)" }
}

/// The samples a track should have, first to last.
private struct SampleList {
  private var now: Int64 = 0
  private var rest: ArraySlice<Sample>

  init(_ samples: [Sample]) { rest = samples[...] }

  var isEmpty: Bool { rest.isEmpty }

  mutating func popFirst() -> (pts: Int64, duration: Int64, size: Int)? {
    guard let sample = rest.popFirst() else { return nil }
    defer { now += sample.duration }
    return (now, sample.duration, sample.data.count)
  }
}

/// libavformat's demuxer over bytes in memory.
private final class MemoryReader {
  private let source: MemorySource
  private let packet: Packet
  private var format: UnsafeMutablePointer<AVFormatContext>?
  private var io: UnsafeMutablePointer<AVIOContext>?

  /// - Parameter bytes: must outlive the reader.
  init(_ bytes: UnsafeRawBufferPointer) throws {
    source = MemorySource(bytes)
    packet = try Packet()
    let bufferSize: Int32 = 32_768
    let buffer = try allocated("av_malloc", av_malloc(Int(bufferSize)))
    io = avio_alloc_context(
      buffer.assumingMemoryBound(to: UInt8.self), bufferSize, 0, Unmanaged.passUnretained(source).toOpaque(),
      { source, target, size in MemorySource.from(source).read(target, size) }, nil,
      { source, offset, origin in MemorySource.from(source).seek(offset, origin) })
    format = avformat_alloc_context()
    guard let format, let io else { throw FFmpegError(function: "avio_alloc_context", code: cff_error_enomem()) }
    format.pointee.pb = io
    try check("avformat_open_input", avformat_open_input(&self.format, nil, av_find_input_format("mov"), nil))
  }

  deinit {
    avformat_close_input(&format)
    if let io { av_free(io.pointee.buffer) }
    avio_context_free(&io)
  }

  var durationUs: Int64 { format?.pointee.duration ?? 0 }

  func requireStreams(_ count: UInt32) throws {
    try require(Int64(format?.pointee.nb_streams ?? 0), Int64(count), "the number of tracks")
  }

  func require(_ found: Int64, _ wanted: Int64, _ what: String) throws(SegmentMismatch) {
    guard found == wanted else { throw SegmentMismatch("\(what) is \(found) instead of \(wanted)") }
  }

  struct ReadSample {
    let stream: Int
    let pts: Int64
    let dts: Int64
    let duration: Int64
    let size: Int
    let isKey: Bool
  }

  func next() throws -> ReadSample? {
    av_packet_unref(packet.pointer)
    let status = av_read_frame(format, packet.pointer)
    if status == cff_error_eof() { return nil }
    try check("av_read_frame", status)
    let found = packet.pointer.pointee
    return ReadSample(
      stream: Int(found.stream_index), pts: found.pts, dts: found.dts, duration: found.duration,
      size: Int(found.size), isKey: cff_packet_is_key(packet.pointer) != 0)
  }
}

private final class MemorySource {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  static func from(_ pointer: UnsafeMutableRawPointer?) -> MemorySource {
    // Set by the reader that owns both; never nil.
    Unmanaged<MemorySource>.fromOpaque(pointer!).takeUnretainedValue()
  }

  func read(_ target: UnsafeMutablePointer<UInt8>?, _ size: Int32) -> Int32 {
    let count = min(Int(size), bytes.count - position)
    guard count > 0, let target else { return cff_error_eof() }
    UnsafeMutableRawPointer(target).copyMemory(from: bytes.baseAddress! + position, byteCount: count)
    position += count
    return Int32(count)
  }

  func seek(_ offset: Int64, _ origin: Int32) -> Int64 {
    let target: Int
    switch origin & ~AVSEEK_FORCE {
    case cff_seek_size(): return Int64(bytes.count)
    case SEEK_SET: target = Int(offset)
    case SEEK_CUR: target = position + Int(offset)
    case SEEK_END: target = bytes.count + Int(offset)
    default: return -1
    }
    guard (0...bytes.count).contains(target) else { return -1 }
    position = target
    return Int64(target)
  }
}
