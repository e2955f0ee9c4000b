import FileSystem
import Glibc
import Sessions

/// The body of a request: bytes, or a file that each attempt reads while it sends.
enum RequestBody {
  case bytes([UInt8])
  case file(OpenFile, path: String)

  init(_ body: ObjectBody) throws {
    switch body {
    case .bytes(let bytes): self = .bytes(bytes)
    case .file(let path):
      let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
      guard file >= 0 else { throw DiskError("open", path) }
      guard let opened = try OpenFile(owning: file, path: path) else { throw DiskError("open", path, code: EINVAL) }
      self = .file(opened, path: path)
    }
  }

  var count: Int {
    switch self {
    case .bytes(let bytes): bytes.count
    case .file(let file, _): file.size
    }
  }

  /// - Throws: ``DiskError``, also if the file has become shorter.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
    let maximum = min(buffer.count, count - offset)
    guard maximum > 0 else { return 0 }
    switch self {
    case .bytes(let bytes):
      bytes.withUnsafeBytes { buffer.copyBytes(from: $0[offset..<offset + maximum]) }
      return maximum
    case .file(let file, let path):
      while true {
        let read = pread(file.descriptor, buffer.baseAddress, maximum, off_t(offset))
        if read > 0 { return read }
        if read < 0 && errno == EINTR { continue }
        throw DiskError("read", path, code: read == 0 ? EIO : errno)
      }
    }
  }

  /// The SHA-256 of the body, in hexadecimal digits.
  func digest() throws -> String {
    var sum = SHA256()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    var offset = 0
    while offset < count {
      let read = try read(into: buffer, at: offset)
      sum.update(UnsafeRawBufferPointer(rebasing: buffer[..<read]))
      offset += read
    }
    return sum.finish()
  }
}

/// A new file for the body of a response. Removed when the last reference goes, unless it is kept.
final class DownloadedFile {
  private let path: String
  private var descriptor: Int32
  private var isKept = false

  init(creating path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    // No property is set yet, so an existing file is not removed.
    guard file >= 0 else { throw DiskError("create", path) }
    self.path = path
    descriptor = file
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if !isKept { unlink(path) }
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws {
    var written = 0
    while written < bytes.count {
      let count = pwrite(descriptor, bytes.baseAddress! + written, bytes.count - written, off_t(offset + written))
      if count < 0 && errno != EINTR { throw DiskError("write", path) }
      written += max(0, count)
    }
  }

  /// - Parameter count: the size of the file; bytes behind it are of a failed attempt.
  func keep(_ count: Int) throws {
    guard ftruncate(descriptor, off_t(count)) == 0 else { throw DiskError("truncate", path) }
    let closing = descriptor
    descriptor = -1
    guard close(closing) == 0 || errno == EINTR else { throw DiskError("close", path) }
    isKept = true
  }
}
