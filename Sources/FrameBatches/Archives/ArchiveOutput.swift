// Packs files into archives, and into a tar in memory. The same files give the same bytes, whatever their owners and times.

import CArchive
import FileSystem
import Glibc

extension Archive {
  /// - Parameter files: names and contents.
  /// - Throws: ``DiskError`` if memory runs out.
  package static func tar(_ files: [(name: String, bytes: [UInt8])]) throws -> [UInt8] {
    // A header and an extended one with its own, padding, and the blocks at the end.
    let most = files.reduce(1 << 15) { $0 + $1.bytes.count + 4_096 + $1.name.utf8.count }
    guard let archive = unsafe archive_write_new() else { throw DiskError("archive_write_new", "tar", code: ENOMEM) }
    defer { unsafe archive_write_free(archive) }
    var used = 0
    return try unsafe [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
      func check(_ status: Int32) throws(DiskError) {
        if status != ARCHIVE_OK { throw unsafe DiskError("write", "tar", code: archive_errno(archive)) }
      }
      try unsafe check(archive_write_set_format_pax_restricted(archive))
      // Write names byte for byte in any locale.
      try unsafe check(archive_write_set_options(archive, "hdrcharset=BINARY"))
      // No padding after the end of the tar.
      try unsafe check(archive_write_set_bytes_in_last_block(archive, 1))
      try unsafe check(archive_write_open_memory(archive, buffer.baseAddress, buffer.count, &used))
      for (name, bytes) in files {
        try unsafe add(name, bytes, to: archive, check)
      }
      try unsafe check(archive_write_close(archive))
      count = used
    }
  }

  /// Adds a file to an archive that is being written. It has no owner and no time.
  ///
  /// - Parameter check: throws the error of a call that did not return `ARCHIVE_OK`.
  static func add(
    _ name: String, _ bytes: [UInt8], to archive: OpaquePointer, _ check: (Int32) throws -> Void
  ) throws {
    guard let entry = unsafe archive_entry_new() else { throw DiskError("archive_entry_new", name, code: ENOMEM) }
    defer { unsafe archive_entry_free(entry) }
    unsafe archive_entry_set_pathname(entry, name)
    unsafe archive_entry_set_filetype(entry, S_IFREG)
    unsafe archive_entry_set_perm(entry, 0o644)
    unsafe archive_entry_set_size(entry, la_int64_t(bytes.count))
    try unsafe check(archive_write_header(archive, entry))
    guard unsafe archive_write_data(archive, bytes, bytes.count) == bytes.count else { return try check(ARCHIVE_FATAL) }
    try unsafe check(archive_write_finish_entry(archive))
  }
}
