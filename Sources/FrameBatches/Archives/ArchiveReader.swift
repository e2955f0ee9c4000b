// Unpacks archives: tar and streams with libarchive, zip with ``ZipReader``.

import CArchive
import FileSystem
import Glibc

package enum Archive {
  /// Reads an archive to its end.
  ///
  /// - Parameters:
  ///   - name: the archive's name in messages.
  ///   - takesTorn: whether to pass on what can be found in a zip without its directory, before it is refused.
  ///   - each: takes each part of the content.
  /// - Throws: ``BadBatch`` if it is damaged or too large, ``DiskError``, ``Cancelled``, and the errors of `each`.
  package static func unpack(
    _ input: ArchiveInput, name: String, limits: Limits, takesTorn: Bool = false, each: (ArchiveItem) throws -> Void
  ) throws {
    if input.isZip { return try ZipReader(input, name: name, limits: limits).unpack(takesTorn: takesTorn, each) }
    let archive = try ArchiveReader(input, name: name, limits: limits)
    var next = try archive.nextEntry()
    if archive.isStream { return try archive.readStream(each) }
    var unpacked = 0
    var entries = 0
    var names: Set<String> = []
    while let entry = next {
      entries += 1
      guard entries <= limits.entries else { throw hasTooManyEntries(name, limits) }
      // Headers and skipped entries count too, because they are unpacked all the same.
      guard entry.size >= 0, entry.size <= limits.unpackedBytes - unpacked else { throw isTooLarge(name, limits) }
      unpacked += entry.size
      if let reason = entry.reasonToRefuse {
        try each(.refused(RefusedFrame(source: entry.path, reason: reason)))
      } else if entry.kind == .file, !isRecorderJunk(entry.path) || isRecording(entry.path) {
        if entry.size > limits.frameBytes {
          try each(.refused(.tooLarge(entry.path, size: entry.size, limits)))
        } else if !names.insert(entry.path).inserted {
          try each(.refused(RefusedFrame(source: entry.path, reason: "a second entry of the same name")))
        } else {
          try each(.file(entry.path, size: entry.size))
          try archive.readFile(entry, each)
        }
      }
      next = try archive.nextEntry()
    }
    try archive.requireEnd()
  }

  static func hasTooManyEntries(_ name: String, _ limits: Limits) -> BadBatch {
    BadBatch("read", name, "more than \(limits.entries) entries", advice: Limits.advice("entries"))
  }

  static func isTooLarge(_ name: String, _ limits: Limits) -> BadBatch {
    BadBatch(
      "read", name, "unpacks to more than the limit of \(limits.unpackedBytes) bytes",
      advice: Limits.advice("unpacked-bytes"))
  }

  static func isTooTight(_ name: String, _ limits: Limits) -> BadBatch {
    BadBatch(
      "read", name, "unpacks to more than \(limits.ratio) times its size",
      advice: Limits.advice("ratio") + ", or pack it less tightly")
  }
}

/// One entry's header.
package struct ArchiveEntry {
  package enum Kind { case file, directory, other }

  /// As written, without a leading `./`.
  package let path: String
  package let kind: Kind
  package let size: Int
  let isLink: Bool

  package var reasonToRefuse: String? {
    guard kind != .directory else { return nil }
    return Self.reasonToRefuse(path: path) ?? (isLink ? "a link" : kind == .file ? nil : "not a regular file")
  }

  package static func reasonToRefuse(path: String) -> String? {
    // Compare bytes: a slash with a combining accent is another `Character`.
    let parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    if path.isEmpty { return "an entry without a name" }
    if parts.first?.isEmpty == true { return "an absolute name" }
    if parts.contains(where: { $0.elementsEqual("..".utf8) }) { return "a name with .." }
    if path.utf8.contains(0) { return "a name with a NUL in it" }
    return path.utf8.count > 1_024 ? "a name that is too long" : nil
  }
}

/// A libarchive reader. Every warning of libarchive but one on a name is an error: a damaged archive is bad input.
/// It is safe: it owns the archive and the buffer, and frees both at its end.
@safe private final class ArchiveReader {
  private let archive: OpaquePointer
  private let input: ArchiveInput
  private let name: String
  private let limits: Limits
  private let part = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
  /// The end of the last entry's content, in the unpacked tar.
  private var contentEnd: Int64 = 0
  /// The number of bytes that were passed on. It includes the holes of sparse entries, which no tar contains.
  private var contentBytes = 0

  init(_ input: ArchiveInput, name: String, limits: Limits) throws {
    guard let archive = unsafe archive_read_new() else { throw DiskError("archive_read_new", name, code: ENOMEM) }
    unsafe self.archive = archive
    self.input = input
    self.name = name
    self.limits = limits
    // Allow one filter only: by default, libarchive unpacks up to 25 nested layers.
    let filter =
      switch input.compression {
      case .none: ARCHIVE_FILTER_NONE
      case .gzip: ARCHIVE_FILTER_GZIP
      case .zstd: ARCHIVE_FILTER_ZSTD
      }
    unsafe archive_read_append_filter(archive, filter)
    unsafe archive_read_support_format_tar(archive)
    unsafe archive_read_support_format_raw(archive)
    input.unpackedBytes = { unsafe Int(archive_filter_bytes(archive, 0)) }
    let opened = unsafe archive_read_open(
      archive, Unmanaged.passUnretained(input).toOpaque(), nil,
      { _, input, start in
        // The archive below uses it, and is freed first.
        unsafe Unmanaged<ArchiveInput>.fromOpaque(input!).takeUnretainedValue().read(&start!.pointee)
      }, nil)
    guard opened == ARCHIVE_OK else { throw failure() }
  }

  deinit {
    unsafe archive_read_free(archive)
    unsafe part.deallocate()
  }

  /// Whether the content is a stream and no tar: one entry without a name or size. It is known after the first header.
  var isStream: Bool { unsafe archive_format(archive) == ARCHIVE_FORMAT_RAW }

  /// Passes on a whole stream.
  func readStream(_ each: (ArchiveItem) throws -> Void) throws {
    try each(.stream)
    var head: [UInt8] = []
    while true {
      let count = try read(or: "it breaks off")
      if count == 0 { break }
      if head.count < 4 { unsafe head += part[..<min(count, 4 - head.count)] }
      guard Compression(startingWith: head) == .none || input.compression == .none else {
        throw BadBatch("read", name, "compressed twice", advice: "compress it once, with gzip or zstd")
      }
      try unsafe each(.part(UnsafeRawBufferPointer(rebasing: part[..<count])))
    }
  }

  func readFile(_ entry: ArchiveEntry, _ each: (ArchiveItem) throws -> Void) throws {
    let cause = "the archive breaks off in \(entry.path)"
    var missing = entry.size
    while missing > 0 {
      let count = min(try read(or: cause), missing)
      guard count > 0 else { throw failure(or: cause) }
      missing -= count
      try unsafe each(.part(UnsafeRawBufferPointer(rebasing: part[..<count])))
    }
  }

  /// Reads some bytes of the content into ``part``; 0 at its end. The limit is checked before more than a part is unpacked.
  private func read(or cause: String) throws -> Int {
    let count = unsafe archive_read_data(archive, part.baseAddress, part.count)
    guard count >= 0 else { throw failure(or: cause) }
    contentBytes += count
    try checkSize()
    return count
  }

  /// The number of bytes unpacked so far, including headers and skipped entries.
  private func checkSize() throws {
    // Filter 0 is the last in the chain; filter -1 is the first, which reads the file.
    let unpacked = unsafe max(Int(archive_filter_bytes(archive, 0)), contentBytes)
    guard unpacked <= limits.unpackedBytes else { throw Archive.isTooLarge(name, limits) }
    guard unpacked > limits.bytesOfAnyRatio else { return }
    guard unsafe unpacked / limits.ratio <= Int(archive_filter_bytes(archive, -1)) else {
      throw Archive.isTooTight(name, limits)
    }
  }

  func nextEntry() throws -> ArchiveEntry? {
    // Names in pax headers are UTF-8; in the C locale libarchive warns of every one that is not ASCII.
    let previous = unsafe uselocale(Self.utf8)
    defer { unsafe uselocale(previous) }
    if contentEnd > 0 {
      guard unsafe archive_read_data_skip(archive) == ARCHIVE_OK else { throw failure() }
      contentEnd = unsafe archive_filter_bytes(archive, 0)
    }
    var entry: OpaquePointer?
    let status = unsafe archive_read_next_header(archive, &entry)
    if status == ARCHIVE_EOF { return nil }
    guard status == ARCHIVE_OK || status == ARCHIVE_WARN && isAboutNames, let entry = unsafe entry else {
      throw failure()
    }
    contentEnd = unsafe archive_filter_bytes(archive, 0)
    try checkSize()
    // Longer names are refused. The message shows a part of the name.
    let raw = unsafe archive_entry_pathname(entry).map {
      unsafe UnsafeBufferPointer(start: $0, count: strnlen($0, 4_096))
    }
    var name = unsafe (raw?.map(UInt8.init(bitPattern:)) ?? [])[...]
    while name.starts(with: "./".utf8) { name = name.dropFirst(2) }
    let path = printableName(Array(name))
    let kind: ArchiveEntry.Kind =
      switch unsafe UInt32(archive_entry_filetype(entry)) & S_IFMT {
      case S_IFREG: .file
      case S_IFDIR: .directory
      default: .other
      }
    return unsafe ArchiveEntry(
      path: path, kind: kind, size: Int(archive_entry_size(entry)),
      isLink: archive_entry_hardlink(entry) != nil || archive_entry_symlink(entry) != nil)
  }

  /// Whether the last warning says that a name in a pax header is not UTF-8. libarchive takes the bytes of the name as they are.
  private var isAboutNames: Bool {
    let text = unsafe archive_error_string(archive).map { unsafe String(cString: $0) }
    return text?.contains("can't be converted from") == true
  }

  /// A tar ends with a block of zeros (POSIX.1-1988 `ustar`: two); libarchive takes the end of the file for it.
  func requireEnd() throws {
    let contentBlocks = (contentEnd + 511) / 512
    guard unsafe archive_filter_bytes(archive, 0) >= 512 * (contentBlocks + 1) else {
      throw failure(or: "the archive breaks off: it has no end mark")
    }
  }

  /// The locale. It is created once, and never changed or freed.
  nonisolated(unsafe) fileprivate static let utf8 = unsafe newlocale(Int32(LC_CTYPE_MASK), "C.UTF-8", nil)

  private func failure(or cause: String? = nil) -> any Error {
    // If a read fails during the detection of the format, libarchive only reports an unknown format.
    switch input.failure {
    case .source(let code): return code == ECANCELED ? Cancelled() : DiskError("read", name, code: code)
    case .unpacksToNothing:
      return BadBatch(
        "read", name, "its compressed parts unpack to next to nothing", advice: "compress it in one part")
    case nil: break
    }
    if unsafe archive_errno(archive) == ENOMEM { return DiskError("read", name, code: ENOMEM) }
    let text = unsafe archive_error_string(archive).map { unsafe String(cString: $0) }
    return BadBatch(
      "read", name, cause ?? (text ?? "not an archive").lowercasedFirst,
      advice: "send a zip or tar of frames, complete, under a name that is not there before it is whole")
  }
}

extension RefusedFrame {
  /// A file of an archive that is larger than any frame may be.
  static func tooLarge(_ path: String, size: Int, _ limits: Limits) -> RefusedFrame {
    let refusal = Refusal(FileRefusal(size: size, limit: limits.frameBytes), isImage: true, limits)
    return RefusedFrame(source: path, reason: refusal.text)
  }
}
