import CFFmpeg
import Glibc

/// SHA-256, by libavutil.
struct SHA256 {
  private let state: State

  private final class State {
    let pointer: OpaquePointer

    init() throws(FFmpegError) {
      pointer = try allocated("av_sha_alloc", av_sha_alloc())
      av_sha_init(pointer, 256)
    }

    deinit { av_free(UnsafeMutableRawPointer(pointer)) }
  }

  init() throws(FFmpegError) { state = try State() }

  /// Of a file of any size.
  static func hex(ofFile path: String, isCancelled: () -> Bool) throws -> String {
    let file = try check("open", path) { open(path, O_RDONLY | O_CLOEXEC) }
    defer { close(file) }
    let sum = try SHA256()
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    while true {
      if isCancelled() { throw Cancelled() }
      let count = read(file, &buffer, buffer.count)
      if count == 0 { return sum.finish() }
      if count < 0 {
        if errno == EINTR { continue }
        throw DiskError("read", path)
      }
      sum.update(Array(buffer[..<count]))
    }
  }

  func update(_ bytes: [UInt8]) {
    bytes.withUnsafeBufferPointer { av_sha_update(state.pointer, $0.baseAddress, $0.count) }
  }

  func update(_ text: String) { update(Array(text.utf8)) }

  /// The digest in 64 hexadecimal digits; ends the computation.
  func finish() -> String {
    var digest = [UInt8](repeating: 0, count: 32)
    av_sha_final(state.pointer, &digest)
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  static func hex(of bytes: [UInt8]) throws(FFmpegError) -> String {
    let sum = try SHA256()
    sum.update(bytes)
    return sum.finish()
  }
}
