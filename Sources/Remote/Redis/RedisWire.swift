import CHiredis
import FileSystem
import Glibc

/// An open connection to Redis. One deadline holds for a command and its reply, however slowly their bytes move. For one
/// thread at a time.
final class RedisWire {
  /// Why a command has no reply.
  struct Fault: Error {
    let cause: String
    var advice = "see that Redis runs there and can be reached from here"
  }

  /// The end of a command, or of several, on the monotonic clock.
  struct Deadline {
    let seconds: Int32
    private let atMs: Int

    init(seconds: Int32) {
      self.seconds = seconds
      atMs = MonotonicClock.milliseconds() + 1_000 * Int(seconds)
    }

    var remainingMs: Int { max(0, atMs - MonotonicClock.milliseconds()) }
  }

  private let library: chr_library
  private let context: UnsafeMutablePointer<redisContext>
  private let reader: RedisReplyReader
  /// For the bytes of a reply, in pieces.
  private var buffer = [UInt8](repeating: 0, count: 16 << 10)

  /// Connects.
  ///
  /// - Parameter timeoutS: seconds that it may take.
  init(_ library: chr_library, to server: RedisURL.Server, timeoutS: Int32) throws(Fault) {
    let context = withUnsafePointer(to: library) { library in
      switch server {
      case .host(let host, let port): chr_connect(library, nil, host, Int32(port), timeoutS)
      case .socket(let path): chr_connect(library, path, nil, 0, timeoutS)
      }
    }
    guard let context else { throw Fault(cause: "no memory", advice: "add memory") }
    do throws(RedisReplyReader.Fault) {
      guard context.pointee.err == 0 else {
        throw RedisReplyReader.Fault(cause: "connect: \(Self.reason(context))")
      }
      reader = try RedisReplyReader(library)
    } catch {
      library.redisFree(context)
      throw Fault(cause: error.cause)
    }
    (self.library, self.context) = (library, context)
  }

  deinit { library.redisFree(context) }

  /// Sends a command, and returns its reply.
  ///
  /// - Throws: ``Fault``; then the connection is of no use any more.
  func ask(_ words: [String], by deadline: Deadline) throws(Fault) -> RedisReply {
    reader.begin()
    try send(Self.command(words), deadline)
    while true {
      let count = try received(deadline)
      do throws(RedisReplyReader.Fault) {
        if let reply = try reader.read(buffer[..<count]) { return reply }
      } catch {
        throw Fault(cause: error.cause, advice: "check that it is Redis")
      }
    }
  }

  /// Returns a command as Redis reads it: the number of words, and each word behind its length in bytes.
  static func command(_ words: [String]) -> [UInt8] {
    var bytes = Array("*\(words.count)\r\n".utf8)
    for word in words {
      bytes += "$\(word.utf8.count)\r\n".utf8
      bytes += word.utf8
      bytes += "\r\n".utf8
    }
    return bytes
  }

  private func send(_ bytes: [UInt8], _ deadline: Deadline) throws(Fault) {
    var sent = 0
    while sent < bytes.count {
      // Without the flag, a closed connection would end the process with SIGPIPE.
      let count = bytes.withUnsafeBytes {
        Glibc.send(
          context.pointee.fd, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      if count >= 0 { sent += count } else { try retry(after: errno, POLLOUT, deadline) }
    }
  }

  /// Waits for bytes of the reply.
  ///
  /// - Returns: the number of those in the buffer.
  private func received(_ deadline: Deadline) throws(Fault) -> Int {
    while true {
      // A reply that drips would never let a read wait.
      if deadline.remainingMs == 0 { throw silence(deadline) }
      let count = recv(context.pointee.fd, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count > 0 { return count }
      if count == 0 { throw Fault(cause: "the server closed the connection") }
      try retry(after: errno, POLLIN, deadline)
    }
  }

  /// Waits until a call that would have blocked is worth another try.
  private func retry(after code: Int32, _ events: Int32, _ deadline: Deadline) throws(Fault) {
    if code == EINTR { return }
    guard code == EAGAIN else { throw Fault(cause: String(cString: strerror(code))) }
    var polled = pollfd(fd: context.pointee.fd, events: Int16(events), revents: 0)
    let isReady = poll(&polled, 1, Int32(deadline.remainingMs))
    if isReady == 0 { throw silence(deadline) }
    if isReady < 0, errno != EINTR { throw Fault(cause: String(cString: strerror(errno))) }
  }

  private func silence(_ deadline: Deadline) -> Fault {
    let limit = "no \(reader.count > 0 ? "whole " : "")answer within \(deadline.seconds) s"
    return Fault(cause: reader.count > 0 ? "\(limit), only \(reader.count) bytes of it" : limit)
  }

  private static func reason(_ context: UnsafeMutablePointer<redisContext>) -> String {
    withUnsafeBytes(of: context.pointee.errstr) { RedisReply.line($0.prefix { $0 != 0 }) }
  }
}
