// A file as a batch: a tar, or a stream of records; plain or in one layer of gzip or zstd, all recognised by content. It is
// read once from front to back into memory, within limits; nothing is ever unpacked to a file.

import CArchive
import Glibc

enum Archive {
  /// - Parameters:
  ///   - descriptor: a file or a pipe, read to its end.
  ///   - name: what to call it in messages.
  ///   - isCancelled: asked before each part of the file is read.
  static func contents(
    reading descriptor: Int32, name: String, limits: Limits, isCancelled: () -> Bool = { false }
  ) throws -> any BatchContents {
    try withoutActuallyEscaping(isCancelled) { isCancelled in
      let archive = try ArchiveReader(descriptor, name: name, limits: limits, isCancelled: isCancelled)
      let first = try archive.nextEntry()
      if archive.isStream { return StreamContents(bytes: try archive.rest()) }
      return try ArchiveContents(archive, first: first, name: name, limits: limits)
    }
  }
}

struct ArchiveContents: BatchContents {
  private(set) var names: [String] = []
  private(set) var refused: [RefusedFrame] = []
  private var files: [String: [UInt8]] = [:]

  func contents(of name: String, limit: Int) throws -> FileContents? {
    guard let bytes = files[name] else { return nil }
    return bytes.count <= limit ? .bytes(bytes) : .refused("\(bytes.count) bytes, more than the limit of \(limit)")
  }

  fileprivate init(_ archive: ArchiveReader, first: ArchiveEntry?, name: String, limits: Limits) throws {
    var unpacked = 0
    var entries = 0
    var next = first
    while let entry = next {
      entries += 1
      guard entries <= limits.entries else {
        throw BadBatch("read", name, "more than \(limits.entries) entries", advice: "split the batch")
      }
      // Headers count too, and what is skipped has to be unpacked all the same.
      guard entry.size >= 0, entry.size <= limits.unpackedBytes - unpacked else { throw archive.unpacksToTooMuch }
      unpacked += entry.size
      try add(entry, from: archive, limits)
      next = try archive.nextEntry()
    }
    try archive.requireEnd()
  }

  private mutating func add(_ entry: ArchiveEntry, from archive: ArchiveReader, _ limits: Limits) throws {
    guard entry.kind != .directory else { return }
    if let reason = entry.reasonToRefuse {
      refused.append(RefusedFrame(source: entry.path, reason: reason))
      return
    }
    guard !isRecorderJunk(entry.path) else { return }
    if entry.size > limits.frameBytes {
      refused.append(
        RefusedFrame(source: entry.path, reason: "\(entry.size) bytes, more than the limit of \(limits.frameBytes)"))
    } else if files[entry.path] != nil {
      refused.append(RefusedFrame(source: entry.path, reason: "a second entry of the same name"))
    } else {
      files[entry.path] = try archive.bytes(of: entry)
      names.append(entry.path)
    }
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
  private let input: ArchiveInput
  private let name: String
  private let limits: Limits
  /// Bytes of the file as it is packed; of a pipe 0.
  private let fileBytes: Int
  /// Where the content of the last entry ended, in the unpacked tar.
  private var contentEnd: Int64 = 0
  /// What has been handed out. The holes of a sparse entry are in no tar.
  private var contentBytes = 0

  init(_ descriptor: Int32, name: String, limits: Limits, isCancelled: @escaping () -> Bool) throws {
    guard let archive = archive_read_new() else { throw DiskError("archive_read_new", name, code: ENOMEM) }
    self.archive = archive
    self.name = name
    self.limits = limits
    var status = stat()
    fileBytes = fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
    input = ArchiveInput(descriptor, isCancelled: isCancelled)
    // Exactly one filter: by itself, libarchive would unpack what was unpacked, up to 25 times.
    let filter =
      switch input.compression {
      case .none: ARCHIVE_FILTER_NONE
      case .gzip: ARCHIVE_FILTER_GZIP
      case .zstd: ARCHIVE_FILTER_ZSTD
      }
    archive_read_append_filter(archive, filter)
    archive_read_support_format_tar(archive)
    archive_read_support_format_raw(archive)
    input.unpackedBytes = { Int(archive_filter_bytes(archive, 0)) }
    let opened = archive_read_open(
      archive, Unmanaged.passUnretained(input).toOpaque(), nil,
      { _, input, start in
        // Given to the archive below, which is freed before it.
        Unmanaged<ArchiveInput>.fromOpaque(input!).takeUnretainedValue().read(&start!.pointee)
      }, nil)
    guard opened == ARCHIVE_OK else { throw failure() }
  }

  deinit { archive_read_free(archive) }

  /// Whether it is no tar: one entry without a name or a size. Known after the first entry's header.
  var isStream: Bool { archive_format(archive) == ARCHIVE_FORMAT_RAW }

  /// All of a stream.
  func rest() throws -> [UInt8] {
    var bytes: [UInt8] = []
    // Images hardly pack, so this is nearly always enough, and an array that grows is there twice; pages that are never
    // written to take no memory.
    bytes.reserveCapacity(2 * min(fileBytes, limits.unpackedBytes / 2))
    var part = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = try part.withUnsafeMutableBytes { try read(into: $0, or: "it breaks off") }
      if count == 0 { break }
      bytes += part[..<count]
    }
    guard Compression(startingWith: bytes.prefix(4)) == .none || input.compression == .none else {
      throw BadBatch("read", name, "compressed twice", advice: "compress it once, with gzip or zstd")
    }
    return bytes
  }

  /// Some bytes of the content, 0 at its end. What is too much is told before there is more than a part of it.
  private func read(into buffer: UnsafeMutableRawBufferPointer, or cause: String) throws -> Int {
    let count = archive_read_data(archive, buffer.baseAddress, min(buffer.count, 1 << 16))
    guard count >= 0 else { throw failure(or: cause) }
    contentBytes += count
    try checkSize()
    return count
  }

  /// Of all that was unpacked so far, headers and what is skipped among it.
  private func checkSize() throws {
    // Filter 0 is the last of those that unpack, filter -1 the first, which reads the file.
    let unpacked = max(Int(archive_filter_bytes(archive, 0)), contentBytes)
    guard unpacked <= limits.unpackedBytes else { throw unpacksToTooMuch }
    guard unpacked > limits.bytesOfAnyRatio else { return }
    guard unpacked / limits.ratio <= Int(archive_filter_bytes(archive, -1)) else {
      throw BadBatch(
        "read", name, "unpacks to more than \(limits.ratio) times its size",
        advice: "split the batch, or pack it less tightly")
    }
  }

  var unpacksToTooMuch: BadBatch {
    BadBatch("read", name, "unpacks to more than the limit of \(limits.unpackedBytes) bytes", advice: "split the batch")
  }

  func nextEntry() throws -> ArchiveEntry? {
    // Names in pax headers are UTF-8; in the C locale libarchive warns of every one that is not ASCII.
    let previous = uselocale(Self.utf8)
    defer { uselocale(previous) }
    if contentEnd > 0 {
      guard archive_read_data_skip(archive) == ARCHIVE_OK else { throw failure() }
      contentEnd = archive_filter_bytes(archive, 0)
    }
    var entry: OpaquePointer?
    let status = archive_read_next_header(archive, &entry)
    if status == ARCHIVE_EOF { return nil }
    guard status == ARCHIVE_OK, let entry else { throw failure() }
    contentEnd = archive_filter_bytes(archive, 0)
    try checkSize()
    // Longer names are refused; what there is of this one is for the message.
    let raw = archive_entry_pathname(entry).map { UnsafeBufferPointer(start: $0, count: strnlen($0, 4_096)) }
    var name = (raw?.map(UInt8.init(bitPattern:)) ?? [])[...]
    while name.starts(with: "./".utf8) { name = name.dropFirst(2) }
    let path = printableName(Array(name))
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
    try [UInt8](unsafeUninitializedCapacity: entry.size) { buffer, filled in
      while filled < entry.size {
        let cause = "the archive breaks off in \(entry.path)"
        let count = try read(
          into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...]), or: cause)
        guard count > 0 else { throw failure(or: cause) }
        filled += count
      }
    }
  }

  /// A tar ends with a block of zeros (POSIX.1-1988 `ustar`: two); libarchive takes the end of the file for it.
  func requireEnd() throws {
    let contentBlocks = (contentEnd + 511) / 512
    guard archive_filter_bytes(archive, 0) >= 512 * (contentBlocks + 1) else {
      throw failure(or: "the archive breaks off: it has no end mark")
    }
  }

  /// Made once, never changed or freed.
  nonisolated(unsafe) private static let utf8 = newlocale(Int32(LC_CTYPE_MASK), "C.UTF-8", nil)

  private func failure(or cause: String? = nil) -> any Error {
    // Where the disk failed while it looked for the format, libarchive only says that it knows none.
    switch input.failure {
    case .disk(let code): return DiskError("read", name, code: code)
    case .cancelled: return Cancelled()
    case .unpacksToNothing:
      return BadBatch(
        "read", name, "its compressed parts unpack to next to nothing", advice: "compress it in one part")
    case nil: break
    }
    if archive_errno(archive) == ENOMEM { return DiskError("read", name, code: ENOMEM) }
    let text = archive_error_string(archive).map { String(cString: $0) }
    return BadBatch(
      "read", name, cause ?? (text ?? "not an archive").lowercasedFirst,
      advice: "send a tar, tar.gz or tar.zst of frames, complete, under a name that is not there before it is whole")
  }
}
