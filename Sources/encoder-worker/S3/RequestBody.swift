import FileSystem
import Glibc
import SegmentEncoder
import Sessions

/// The body of a request: bytes, or a file that is read while it goes out, and again when it is tried again.
enum RequestBody {
  case none
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
    case .none: 0
    case .bytes(let bytes): bytes.count
    case .file(let file, _): file.size
    }
  }

  /// - Throws: the file has become shorter.
  func read(into room: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
    let most = min(room.count, count - offset)
    guard most > 0 else { return 0 }
    switch self {
    case .none: return 0
    case .bytes(let bytes):
      bytes.withUnsafeBytes { room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + most])) }
      return most
    case .file(let file, let path):
      while true {
        let read = pread(file.descriptor, room.baseAddress, most, off_t(offset))
        if read > 0 { return read }
        if read < 0 && errno == EINTR { continue }
        throw DiskError("read", path, code: read == 0 ? EIO : errno)
      }
    }
  }

  /// The SHA-256 of all of it, in hexadecimal digits.
  func digest() throws -> String {
    var sum = SHA256()
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { room.deallocate() }
    var offset = 0
    while offset < count {
      let read = try read(into: room, at: offset)
      sum.update(UnsafeRawBufferPointer(rebasing: room[..<read]))
      offset += read
    }
    return sum.finish()
  }
}

/// A new file that an answer is written to; it goes with this, unless it is kept.
final class DownloadedFile {
  private let path: String
  private var descriptor: Int32
  private var isKept = false

  init(creating path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    // Nothing is set yet, so that what is there is not removed as if it were ours.
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

  /// - Parameter count: its bytes; what is behind them is of an attempt that failed.
  func keep(_ count: Int) throws {
    guard ftruncate(descriptor, off_t(count)) == 0 else { throw DiskError("truncate", path) }
    let closing = descriptor
    descriptor = -1
    guard close(closing) == 0 || errno == EINTR else { throw DiskError("close", path) }
    isKept = true
  }
}
