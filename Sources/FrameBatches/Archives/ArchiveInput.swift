import Glibc

/// The compression of a file, detected by its first bytes.
package enum Compression {
  case none, gzip, zstd

  init(startingWith bytes: some Collection<UInt8>) {
    if bytes.starts(with: [0x1F, 0x8B]) {
      self = .gzip
    } else if bytes.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) {
      self = .zstd
    } else if let first = bytes.first, first & 0xF0 == 0x50, bytes.dropFirst().starts(with: [0x2A, 0x4D, 0x18]) {
      // A skippable frame (RFC 8878, 3.1.2), with which parallel compressors begin.
      self = .zstd
    } else {
      self = .none
    }
  }
}

/// Reads an archive for libarchive, from front to back. libarchive can read a whole file within one call, so this class checks the
/// ratio of input to output at each read. It is safe: it owns its buffer, and a source gets the buffer or a part of it.
@safe package final class ArchiveInput {
  /// Reads the next bytes into memory. Returns the number of bytes: 0 at the end, `-errno` on failure, and `-ECANCELED` when a stop
  /// is requested.
  package typealias ReadFunction = (UnsafeMutableRawBufferPointer) -> Int
  /// Reads bytes at any offset, with the same results.
  package typealias RandomSource = (_ offset: Int, UnsafeMutableRawBufferPointer) -> Int

  package enum Failure {
    /// A read failed with this `errno`.
    case source(Int32)
    /// More than 1 MiB of input, and more than two bytes of it for each byte of output.
    case unpacksToNothing
  }

  /// The reason why reading stopped before the end; nil if it did not.
  package private(set) var failure: Failure?
  let compression: Compression
  /// The bytes that were unpacked so far; asked only while the file is compressed.
  package var unpackedBytes: () -> Int = { 0 }
  /// Bytes of a file; nil for a pipe, which can only be read from front to back.
  let size: Int?
  let source: RandomSource
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
  /// The number of bytes that were read ahead.
  private var waiting = 0
  private var readBytes = 0
  private var position = 0

  package convenience init(_ source: @escaping ReadFunction) { unsafe self.init(size: nil) { unsafe source($1) } }

  /// - Parameter size: bytes of a file; nil for a pipe.
  package init(size: Int?, _ source: @escaping RandomSource) {
    unsafe (self.size, self.source) = (size, source)
    // A pipe may deliver them one by one.
    while waiting < 4 {
      let outcome = unsafe source(waiting, UnsafeMutableRawBufferPointer(rebasing: buffer[waiting...]))
      if outcome < 0 { failure = .source(Int32(-outcome)) }
      guard outcome > 0 else { break }
      waiting += outcome
    }
    position = waiting
    compression = unsafe Compression(startingWith: buffer[..<waiting])
  }

  deinit { unsafe buffer.deallocate() }

  /// Whether it is a zip archive: it begins with an entry, or with the end record if it has no entries.
  var isZip: Bool {
    [[0x50, 0x4B, 3, 4], [0x50, 0x4B, 5, 6]].contains { unsafe buffer[..<waiting].starts(with: $0) }
  }

  /// Reads more bytes.
  ///
  /// - Parameter start: set to their address, which is valid until the next call.
  /// - Returns: the number of bytes; 0 at the end, negative after a ``failure``.
  package func read(_ start: inout UnsafeRawPointer?) -> Int {
    unsafe start = UnsafeRawPointer(buffer.baseAddress)
    if failure != nil { return -1 }
    var count = waiting
    waiting = 0
    if count == 0 {
      count = unsafe source(position, buffer)
      if count < 0 { return fail(.source(Int32(-count))) }
      position += count
    }
    readBytes += count
    // Compression adds less than a thousandth, even to random bytes.
    if compression != .none, readBytes > 1 << 20, (readBytes - 1 << 20) / 2 > unpackedBytes() {
      return fail(.unpacksToNothing)
    }
    return count
  }

  private func fail(_ failure: Failure) -> Int {
    self.failure = failure
    return -1
  }
}
