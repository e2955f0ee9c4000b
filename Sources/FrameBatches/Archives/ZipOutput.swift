// Writes a zip file by file, without compression: pictures are compressed already. The same files give the same bytes.

import CArchive
import FileSystem
import Glibc

/// A zip that is being written. It is safe: it owns the archive, and frees it at its end.
@safe package final class ZipOutput {
  private let archive: OpaquePointer
  private let sink: Sink

  /// The bytes that libarchive has written.
  private final class Sink {
    let write: ([UInt8]) throws -> Void
    var failure: (any Error)?

    init(_ write: @escaping ([UInt8]) throws -> Void) { self.write = write }

    /// - Returns: the number of bytes; -1 after a failure.
    func take(_ bytes: UnsafeRawBufferPointer) -> Int {
      do {
        try unsafe write(Array(bytes))
        return bytes.count
      } catch {
        failure = error
        return -1
      }
    }
  }

  /// - Parameter write: appends bytes to the file. Its errors are thrown as they are.
  /// - Throws: ``DiskError`` if memory runs out.
  package init(_ write: @escaping ([UInt8]) throws -> Void) throws {
    guard let archive = unsafe archive_write_new() else { throw DiskError("archive_write_new", "zip", code: ENOMEM) }
    unsafe self.archive = archive
    sink = Sink(write)
    try unsafe check(archive_write_set_format_zip(archive))
    try unsafe check(archive_write_set_options(archive, "zip:compression=store"))
    // No padding after the end.
    try unsafe check(archive_write_set_bytes_in_last_block(archive, 1))
    let opened = unsafe archive_write_open(
      archive, Unmanaged.passUnretained(sink).toOpaque(), nil,
      { _, sink, bytes, count in
        // The archive uses it, and is freed first.
        unsafe Unmanaged<Sink>.fromOpaque(sink!).takeUnretainedValue().take(
          UnsafeRawBufferPointer(start: bytes, count: count))
      }, nil)
    try check(opened)
  }

  deinit { unsafe archive_write_free(archive) }

  package func add(_ name: String, _ bytes: [UInt8]) throws {
    try unsafe Archive.add(name, bytes, to: archive, check)
  }

  /// Writes the directory of the zip.
  package func finish() throws { try unsafe check(archive_write_close(archive)) }

  private func check(_ status: Int32) throws {
    if status == ARCHIVE_OK { return }
    if let failure = sink.failure { throw failure }
    throw unsafe DiskError("write", "zip", code: archive_errno(archive))
  }
}
