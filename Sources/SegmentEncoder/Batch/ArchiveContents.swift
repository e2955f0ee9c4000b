// An archive as a batch: tar, plain or in gzip or zstd, recognised by content. It is read once from front to back
// into memory, within limits; nothing is ever unpacked to a file.

import CArchive
import Glibc

struct ArchiveContents: BatchContents {
  private(set) var names: [String] = []
  private(set) var refused: [RefusedFrame] = []
  private var files: [String: [UInt8]] = [:]

  func contents(of name: String, limit: Int) throws -> FileContents? {
    guard let bytes = files[name] else { return nil }
    return bytes.count <= limit ? .bytes(bytes) : .refused("\(bytes.count) bytes, more than the limit of \(limit)")
  }

  /// - Parameters:
  ///   - descriptor: a file or a pipe, read to its end.
  ///   - name: what to call it in messages.
  init(reading descriptor: Int32, name: String, limits: Limits) throws {
    let archive = try ArchiveReader(descriptor, name: name)
    var unpacked = 0
    while let entry = try archive.nextEntry() {
      guard names.count + refused.count < limits.entries else {
        throw BadBatch("read", name, "more than \(limits.entries) entries", advice: "split the batch")
      }
      guard entry.kind != .directory else { continue }
      if let reason = entry.reasonToRefuse {
        refused.append(RefusedFrame(source: entry.path, reason: reason))
        continue
      }
      guard !isRecorderJunk(entry.path) else { continue }
      unpacked += entry.size
      guard entry.size >= 0, unpacked <= limits.unpackedBytes else {
        throw BadBatch(
          "read", name, "unpacks to more than the limit of \(limits.unpackedBytes) bytes", advice: "split the batch")
      }
      if entry.size > limits.fileBytes {
        refused.append(
          RefusedFrame(
            source: entry.path, reason: "\(entry.size) bytes, more than the limit of \(limits.fileBytes)"))
      } else if files[entry.path] != nil {
        refused.append(RefusedFrame(source: entry.path, reason: "a second entry of the same name"))
      } else {
        files[entry.path] = try archive.bytes(of: entry)
        names.append(entry.path)
      }
    }
    try archive.requireEnd()
  }
}

/// One entry's header.
private struct ArchiveEntry {
  enum Kind { case file, directory, other }

  /// As written, without a leading `./`.
  let path: String
  let kind: Kind
  let size: Int
  let isLink: Bool

  var reasonToRefuse: String? {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    if path.isEmpty { return "an entry without a name" }
    if path.hasPrefix("/") { return "an absolute name" }
    if parts.contains("..") { return "a name with .." }
    if path.utf8.count > 1_024 { return "a name that is too long" }
    if isLink { return "a link" }
    return kind == .file ? nil : "not a regular file"
  }
}

/// libarchive on a descriptor. Every warning is an error: an archive is whole, or it is bad input.
private final class ArchiveReader {
  private let archive: OpaquePointer
  private let name: String
  private let source: ArchiveSource

  init(_ descriptor: Int32, name: String) throws {
    guard let archive = archive_read_new() else { throw DiskError("archive_read_new", name, code: ENOMEM) }
    self.archive = archive
    self.name = name
    source = ArchiveSource(descriptor)
    archive_read_support_filter_gzip(archive)
    archive_read_support_filter_zstd(archive)
    archive_read_support_format_tar(archive)
    let status = archive_read_open(
      archive, Unmanaged.passUnretained(source).toOpaque(), nil,
      { archive, source, buffer in
        Unmanaged<ArchiveSource>.fromOpaque(source!).takeUnretainedValue().read(into: buffer!, for: archive!)
      }, nil)
    guard status == ARCHIVE_OK else { throw failure() }
  }

  deinit { archive_read_free(archive) }

  func nextEntry() throws -> ArchiveEntry? {
    var entry: OpaquePointer?
    let status = archive_read_next_header(archive, &entry)
    if status == ARCHIVE_EOF { return nil }
    guard status == ARCHIVE_OK, let entry else { throw failure() }
    let raw = archive_entry_pathname(entry).map { Array(UnsafeBufferPointer(start: $0, count: strlen($0))) } ?? []
    var path = printableName(raw.map(UInt8.init(bitPattern:)))
    while path.hasPrefix("./") { path.removeFirst(2) }
    let kind: ArchiveEntry.Kind =
      switch UInt32(archive_entry_filetype(entry)) & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .directory
      default: .other
      }
    return ArchiveEntry(
      path: path, kind: kind, size: Int(archive_entry_size(entry)),
      isLink: archive_entry_hardlink(entry) != nil || archive_entry_symlink(entry) != nil)
  }

  func bytes(of entry: ArchiveEntry) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: entry.size)
    var filled = 0
    while filled < bytes.count {
      let count = bytes.withUnsafeMutableBytes {
        archive_read_data(archive, $0.baseAddress! + filled, $0.count - filled)
      }
      guard count > 0 else { throw failure(or: "the archive breaks off in \(entry.path)") }
      filled += count
    }
    return bytes
  }

  /// A tar ends with a block of zeros (POSIX.1-1988 `ustar`: two); libarchive takes the end of the file for it.
  func requireEnd() throws {
    // In a compressed archive the compression's own end mark has been checked.
    guard archive_filter_count(archive) <= 1 else { return }
    guard source.endsWithZeroBlock else {
      throw failure(or: "the archive breaks off: it has no end mark")
    }
  }

  private func failure(or cause: String? = nil) -> any Error {
    if let broken = source.failure { return broken }
    let text = archive_error_string(archive).map { String(cString: $0) }
    return BadBatch(
      "read", name, cause ?? (text ?? "not an archive").lowercasedFirst,
      advice: "send a tar, tar.gz or tar.zst of frames, complete, under a name that is not there before it is whole")
  }
}

/// Feeds libarchive, and remembers how the file ended and what went wrong.
private final class ArchiveSource {
  private(set) var failure: DiskError?
  private let descriptor: Int32
  private var buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
  /// How many of the last bytes in a row were zero.
  private var zeros = 0

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { buffer.deallocate() }

  var endsWithZeroBlock: Bool { zeros >= 512 }

  func read(into result: UnsafeMutablePointer<UnsafeRawPointer?>, for archive: OpaquePointer) -> Int {
    while true {
      let count = Glibc.read(descriptor, buffer.baseAddress!, buffer.count)
      if count < 0 && errno == EINTR { continue }
      if count < 0 {
        failure = DiskError("read", "archive")
        return -1
      }
      let trailing = buffer[..<count].reversed().prefix { $0 == 0 }.count
      zeros = trailing == count ? zeros + count : trailing
      result.pointee = UnsafeRawPointer(buffer.baseAddress!)
      return count
    }
  }
}
