import Glibc

/// The bytes of an archive on their way to libarchive, and why there are no more.
final class ArchiveInput {
  /// What reading failed with.
  private(set) var failure: Int32?
  private let descriptor: Int32
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)

  /// - Parameter descriptor: stays the caller's.
  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { buffer.deallocate() }

  /// Some more bytes.
  ///
  /// - Parameter start: becomes where they are, until the next call.
  /// - Returns: how many; 0 at the end, negative where the disk failed.
  func read(_ start: inout UnsafeRawPointer?) -> Int {
    start = UnsafeRawPointer(buffer.baseAddress)
    while true {
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      if errno != EINTR {
        failure = errno
        return -1
      }
    }
  }
}
