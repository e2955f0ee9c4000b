import Glibc

/// Writes all of some bytes at an offset of a file.
///
/// - Parameter path: the file's name in messages.
package func writeWhole(
  _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int, path: String
) throws(DiskError) {
  var written = 0
  while written < bytes.count {
    written += try check("write", path) {
      pwrite(descriptor, bytes.baseAddress! + written, bytes.count - written, off_t(offset + written))
    }
  }
}

/// Writes all of an array's bytes at an offset of a file.
///
/// - Parameter path: the file's name in messages.
package func writeWhole(_ bytes: [UInt8], to descriptor: Int32, at offset: Int, path: String) throws(DiskError) {
  let result = bytes.withUnsafeBytes { bytes in
    Result { () throws(DiskError) in try writeWhole(bytes, to: descriptor, at: offset, path: path) }
  }
  try result.get()
}
