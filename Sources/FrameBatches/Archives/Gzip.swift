// Packs bytes as a gzip file (RFC 1952), for answers of servers. Speed matters more than size: an answer is packed while its client waits.

import CZlib
import FileSystem
import Glibc

package enum Gzip {
  /// Returns the bytes as a gzip file without a name and a time, so that the same bytes give the same file.
  ///
  /// - Throws: ``DiskError`` if memory runs out, or for bytes beyond 2 GiB.
  package static func packed(_ bytes: [UInt8]) throws(DiskError) -> [UInt8] {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    unsafe stream.initialize(to: z_stream())
    defer { unsafe stream.deallocate() }
    // 16 more: a gzip file. 8 is zlib's usual memory.
    let status = unsafe deflateInit2_(
      stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK, bytes.count <= 1 << 31 else { throw DiskError("deflateInit2", "gzip", code: ENOMEM) }
    defer { unsafe deflateEnd(stream) }
    let most = Int(unsafe deflateBound(stream, UInt(bytes.count)))
    var isDone = false
    let packed = unsafe [UInt8](unsafeUninitializedCapacity: most) { output, filled in
      unsafe bytes.withUnsafeBufferPointer { input in
        // zlib does not write to it.
        unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        unsafe stream.pointee.avail_in = UInt32(input.count)
        unsafe stream.pointee.next_out = output.baseAddress
        unsafe stream.pointee.avail_out = UInt32(output.count)
        isDone = unsafe deflate(stream, Z_FINISH) == Z_STREAM_END
        filled = unsafe output.count - Int(stream.pointee.avail_out)
      }
    }
    guard isDone else { throw DiskError("deflate", "gzip", code: ENOMEM) }
    return packed
  }
}
