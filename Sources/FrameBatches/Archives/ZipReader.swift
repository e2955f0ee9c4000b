// Unpacks zip archives with zlib instead of libarchive, which does not detect overlapping entries. libarchive also needs files of
// the C library to convert names of code page 437; the sandbox cannot open them.

import CZlib
import FileSystem
import Glibc

struct ZipReader {
  private let file: ZipFile
  private let name: String
  private let limits: Limits

  private static let partBytes = 256 << 10

  init(_ input: ArchiveInput, name: String, limits: Limits) throws {
    (self.name, self.limits) = (name, limits)
    file = try ZipFile(input, name: name, limits: limits)
  }

  /// Passes on each complete file. Refuses a damaged file, and continues with the next.
  ///
  /// - Parameter takesTorn: whether to look for files where there is no directory, before the archive is refused.
  func unpack(takesTorn: Bool, _ each: (ArchiveItem) throws -> Void) throws {
    let directory: ZipDirectory
    do {
      directory = try ZipDirectory(file, limits: limits)
    } catch let bad as BadBatch {
      if takesTorn { try salvage(each) }
      throw bad
    }
    var names: Set<String> = []
    var unpacked = 0
    let keepsRecordings = directory.hasMoreRecordings
    // All limits are checked with the numbers of the directory, before any entry is unpacked.
    let wanted = try directory.entries.indices.filter { index in
      let (entry, header) = (directory.entries[index], directory.entries[index].header)
      if let reason = entry.reasonToRefuse {
        try each(.refused(RefusedFrame(source: header.path.shortened(to: 4_096), reason: reason)))
      } else if header.kind == .file, !isRecorderJunk(header.path) || keepsRecordings && isRecording(header.path) {
        if header.size > limits.frameBytes {
          try each(.refused(.tooLarge(header.path, size: header.size, limits)))
        } else if !names.insert(header.path).inserted {
          try each(.refused(RefusedFrame(source: header.path, reason: "a second entry of the same name")))
        } else {
          unpacked += header.size
          guard unpacked <= limits.unpackedBytes else { throw Archive.isTooLarge(name, limits) }
          return true
        }
      }
      return false
    }
    guard unpacked <= limits.bytesOfAnyRatio || unpacked / limits.ratio <= file.count else {
      throw Archive.isTooTight(name, limits)
    }
    for index in wanted {
      let path = directory.entries[index].header.path
      switch try contents(of: index, in: directory) {
      case .bytes(let bytes):
        try each(.file(path, size: bytes.count))
        if !bytes.isEmpty { try unsafe bytes.withUnsafeBytes { try unsafe each(.part($0)) } }
      case .refused(let refusal): try each(.refused(RefusedFrame(source: path, reason: "\(refusal)")))
      }
    }
  }

  /// Passes on the files before the first damaged one, by their local headers alone. The content of the last one may break off.
  private func salvage(_ each: (ArchiveItem) throws -> Void) throws {
    var (start, unpacked, count) = (0, 0, 0)
    while start + ZipEntry.localBytes <= file.count, count < limits.entries {
      let local = try file.bytes(start..<start + ZipEntry.localBytes)
      guard local.number(0, 4) == 0x0403_4B50, local.number(6, 2) & 0x2041 == 0 else { return }
      let (method, nameStart) = (local.number(8, 2), start + ZipEntry.localBytes)
      let nameEnd = min(file.count, nameStart + local.number(26, 2))
      let path = ZipName.path(try file.bytes(nameStart..<nameEnd))
      let dataStart = nameEnd + local.number(28, 2)
      // Bit 3: the sizes stand behind the content, or are unknown.
      let hasSizes = local.number(6, 2) & 8 == 0
      let packed = min(dataStart, file.count)..<min(file.count, hasSizes ? dataStart + local.number(18, 4) : file.count)
      let room = min(limits.frameBytes, limits.unpackedBytes - unpacked)
      var (bytes, read) = ([UInt8](), packed.count)
      if method == 8 {
        let unpacking = try inflated(packed, most: room)
        (bytes, read) = (unpacking.bytes, unpacking.inflater.readBytes)
      } else {
        bytes = try stored(packed.prefix(room))
      }
      unpacked += bytes.count
      count += 1
      if ArchiveEntry.reasonToRefuse(path: path) == nil, !path.hasSuffix("/") {
        try each(.file(path, size: bytes.count))
        if !bytes.isEmpty { try unsafe bytes.withUnsafeBytes { try unsafe each(.part($0)) } }
      }
      guard unpacked <= limits.bytesOfAnyRatio || unpacked / limits.ratio <= file.count, hasSizes || method == 8 else {
        return
      }
      start = packed.lowerBound + read
      // The sizes, with a signature or without.
      if !hasSizes { start += try [16, 12].first { try isHeader(at: start + $0) } ?? file.count }
    }
  }

  private func isHeader(at offset: Int) throws -> Bool {
    try offset + 4 <= file.count && file.bytes(offset..<offset + 4).number(0, 4) == 0x0403_4B50
  }

  private func contents(of index: Int, in directory: ZipDirectory) throws -> FileContents {
    let (entry, limit) = (directory.entries[index], directory.limit(of: index))
    let local = try file.bytes(entry.offset..<entry.offset + ZipEntry.localBytes)
    guard local.number(0, 4) == 0x0403_4B50 else { return .refused("damaged: it has no local header") }
    let nameStart = entry.offset + ZipEntry.localBytes
    let start = nameStart + local.number(26, 2) + local.number(28, 2)
    guard start <= limit, entry.packedSize <= limit - start else { throw directory.overlap(entry, file) }
    if let reason = entry.mismatch(local, try file.bytes(nameStart..<start)) { return .refused("\(reason)") }
    let packed = start..<start + entry.packedSize
    guard let bytes = try entry.method == 0 ? stored(packed) : inflated(packed, size: entry.header.size) else {
      return .refused("damaged: it does not unpack to \(entry.header.size) bytes")
    }
    let checksum = unsafe bytes.withUnsafeBytes { unsafe crc32_z(0, $0.baseAddress, $0.count) }
    return Int(checksum) == entry.checksum ? .bytes(bytes) : .refused("damaged: its checksum is wrong")
  }

  private func stored(_ range: Range<Int>) throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    try forEachPart(of: range) { part in
      bytes += part
      return true
    }
    return bytes
  }

  /// Unpacks raw deflate (RFC 1951) as far as it goes.
  private func inflated(_ range: Range<Int>, most: Int) throws -> (bytes: [UInt8], inflater: Inflater) {
    let inflater = try Inflater()
    let bytes = try unsafe [UInt8](unsafeUninitializedCapacity: most) { output, filled in
      try forEachPart(of: range) { try unsafe inflater.add($0, to: output, &filled) }
    }
    return (bytes, inflater)
  }

  /// Unpacks raw deflate. Returns nil if the result does not have exactly this size.
  private func inflated(_ range: Range<Int>, size: Int) throws -> [UInt8]? {
    // One more byte detects a larger result.
    let (bytes, inflater) = try inflated(range, most: size + 1)
    return inflater.isDone && inflater.readBytes == range.count && bytes.count == size ? bytes : nil
  }

  /// - Parameter body: returns whether it needs the next part.
  private func forEachPart(of range: Range<Int>, _ body: (ArraySlice<UInt8>) throws -> Bool) throws {
    for start in stride(from: range.lowerBound, to: range.upperBound, by: Self.partBytes) {
      guard try body(try file.bytes(start..<min(range.upperBound, start + Self.partBytes))) else { return }
    }
  }
}

/// A zlib stream. It is safe: it owns the stream, which points to input and output during a call only.
@safe private final class Inflater {
  private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  /// Whether the end of the compressed bytes was reached.
  private(set) var isDone = false
  private(set) var readBytes = 0

  init() throws(DiskError) {
    unsafe stream.initialize(to: z_stream())
    // Negative: raw, without the header of zlib or gzip, and with a window of 32 KiB.
    let status = unsafe inflateInit2_(stream, -MAX_WBITS, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else { throw DiskError("inflateInit2", "zip", code: ENOMEM) }
  }

  deinit {
    unsafe inflateEnd(stream)
    unsafe stream.deallocate()
  }

  /// Unpacks the next part of the input.
  ///
  /// - Returns: whether compressed bytes remain, and the output has room.
  func add(
    _ input: ArraySlice<UInt8>, to output: UnsafeMutableBufferPointer<UInt8>, _ filled: inout Int
  ) throws(DiskError) -> Bool {
    var status = Z_OK
    unsafe input.withUnsafeBufferPointer { input in
      // zlib does not write to it.
      unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
      unsafe stream.pointee.avail_in = UInt32(input.count)
      while status == Z_OK, unsafe stream.pointee.avail_in > 0, filled < output.count {
        let room = min(output.count - filled, 1 << 30)
        unsafe stream.pointee.next_out = output.baseAddress.map { unsafe $0 + filled }
        unsafe stream.pointee.avail_out = UInt32(room)
        status = unsafe inflate(stream, Z_NO_FLUSH)
        unsafe filled += room - Int(stream.pointee.avail_out)
      }
      unsafe readBytes += input.count - Int(stream.pointee.avail_in)
    }
    if status == Z_MEM_ERROR { throw DiskError("inflate", "zip", code: ENOMEM) }
    isDone = status == Z_STREAM_END
    return status == Z_OK && filled < output.count
  }
}

extension ZipDirectory {
  /// Whether it has more MP4s than pictures. Beside pictures they are not unpacked.
  fileprivate var hasMoreRecordings: Bool {
    let recordings = entries.count { isRecording($0.header.path) }
    return recordings > 0 && recordings > entries.count { PictureNames.isPicture($0.header.path) }
  }
}
