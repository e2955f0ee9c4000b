// The messages of a decoder process. Each starts with its length, and then its kind.

import Glibc

/// The decoder's end of its socket. It trusts the worker at the other end; when the worker is gone, the process ends.
struct DecoderChannel {
  enum Message: Int, WireValue {
    /// The last message of each question.
    case answer
    /// A request for bytes of the file that the decoder reads: an offset and a number.
    case input
    /// A part of the result.
    case output
    /// The decoder has read one more sample.
    case step
  }

  /// Maximum bytes of a file, or of a result, in one message.
  static let partBytes = 256 << 10

  let socket: Int32

  /// Returns the next question, or nil when the worker has closed the socket.
  func question() -> WireReader? { length().flatMap { read($0) }.map(WireReader.init) }

  /// Reads files of these sizes, which follow a question. They are not part of it, so that no copy is needed.
  func files(_ sizes: [Int]) -> [[UInt8]] {
    sizes.map { size in
      guard size >= 0, let file = read(size) else { _exit(1) }
      return file
    }
  }

  /// Reads bytes of the file at an offset.
  ///
  /// - Returns: the number of bytes; 0 at the end of the file.
  func input(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
    send(.input, offset, min(target.count, Self.partBytes))
    guard let count = length(), count <= target.count,
      unsafe read(UnsafeMutableRawBufferPointer(rebasing: target[..<count]))
    else { _exit(1) }
    return count
  }

  /// Reports progress of work that sends no result for a long time.
  func step() {
    // Without `send`, whose call with no values ends the optimiser of Swift 6.2.3 as Debian builds it.
    var message = WireWriter()
    message.put(Message.step)
    write(message.framed)
  }

  /// Sends a part of the result.
  func output<each Value: WireValue>(_ values: repeat each Value) { send(.output, repeat each values) }

  /// Like ``output(_:after:)``, for an array.
  func output<each Value: WireValue>(bytes: [UInt8], after head: repeat each Value) {
    unsafe bytes.withUnsafeBytes { unsafe output($0, after: repeat each head) }
  }

  /// Sends bytes of the result in as many messages as needed, each starting with `head`. A part reads them as ``WireBytes``.
  func output<each Value: WireValue>(_ bytes: UnsafeRawBufferPointer, after head: repeat each Value) {
    for start in stride(from: 0, to: max(1, bytes.count), by: Self.partBytes) {
      let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + Self.partBytes)])
      var (message, length) = (WireWriter(), WireWriter())
      message.put(Message.output, repeat each head, part.count)
      length.put(message.bytes.count + part.count)
      write(length.bytes + message.bytes)
      unsafe write(part)
    }
  }

  func answer<Request: DecoderRequest>(to _: Request.Type, _ answer: Request.Answer) { send(.answer, answer) }

  private func send<each Value: WireValue>(_ kind: Message, _ values: repeat each Value) {
    var message = WireWriter()
    message.put(kind, repeat each values)
    write(message.framed)
  }

  private func length() -> Int? {
    guard let head = read(8) else { return nil }
    var reader = WireReader(head)
    guard let count = try? reader.read(Int.self), count >= 0 else { return nil }
    return count
  }

  private func read(_ count: Int) -> [UInt8]? {
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
      filled = unsafe read(UnsafeMutableRawBufferPointer(bytes)) ? count : 0
    }
    return bytes.count == count ? bytes : nil
  }

  /// - Returns: whether the socket had enough bytes.
  private func read(_ target: UnsafeMutableRawBufferPointer) -> Bool {
    var received = 0
    while received < target.count {
      let part = unsafe Glibc.read(socket, target.baseAddress! + received, target.count - received)
      guard part > 0 else { return false }
      received += part
    }
    return true
  }

  private func write(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe write($0) } }

  private func write(_ bytes: UnsafeRawBufferPointer) {
    var sent = 0
    while sent < bytes.count {
      let part = unsafe Glibc.write(socket, bytes.baseAddress! + sent, bytes.count - sent)
      guard part > 0 else { _exit(1) }
      sent += part
    }
  }
}
