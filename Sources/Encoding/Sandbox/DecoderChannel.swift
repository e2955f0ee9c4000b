// The messages of a decoder's process. Each has its length first, and then its kind.

import Glibc

/// The decoder's end of its socket. It trusts the worker at the other end; when the worker is gone, the process ends.
package struct DecoderChannel {
  package enum Message: Int, WireValue {
    /// The last one, to each question.
    case answer
    /// Some bytes of the file that is read are wanted: an offset and a number.
    case input
    /// A part of the result.
    case output
    /// The decoder has read one more sample.
    case step
  }

  /// Bytes of a file, or of a result, that pass in one message at most.
  static let partBytes = 256 << 10

  package let socket: Int32

  /// The next question; nil at the end.
  package func question() -> WireReader? {
    guard let count = length() else { return nil }
    return read(count).map(WireReader.init)
  }

  /// Some bytes of the file that is read, from an offset on.
  ///
  /// - Returns: how many; 0 at its end.
  package func input(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
    send(.input, offset, min(target.count, Self.partBytes))
    guard let count = length(), count <= target.count else { _exit(1) }
    guard read(UnsafeMutableRawBufferPointer(rebasing: target[..<count])) else { _exit(1) }
    return count
  }

  /// Reports progress of work that sends no result for a long time.
  package func step() { send(.step) }

  /// Sends a part of the result.
  package func output<each Value: WireValue>(_ values: repeat each Value) { send(.output, repeat each values) }

  /// Sends bytes of the result, in as many parts as it takes, each behind the same head.
  package func output<each Value: WireValue>(_ bytes: UnsafeRawBufferPointer, behind head: repeat each Value) {
    for start in stride(from: 0, to: max(1, bytes.count), by: Self.partBytes) {
      let part = UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + Self.partBytes)])
      var (message, length) = (WireWriter(), WireWriter())
      message.put(Message.output, repeat each head, part.count)
      length.put(message.bytes.count + part.count)
      write(length.bytes + message.bytes)
      write(part)
    }
  }

  package func answer<each Value: WireValue>(_ values: repeat each Value) { send(.answer, repeat each values) }

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
    var isWhole = false
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { bytes, filled in
      isWhole = read(UnsafeMutableRawBufferPointer(bytes))
      filled = isWhole ? count : 0
    }
    return isWhole ? bytes : nil
  }

  /// - Returns: whether all of it came.
  private func read(_ target: UnsafeMutableRawBufferPointer) -> Bool {
    var received = 0
    while received < target.count {
      let part = Glibc.read(socket, target.baseAddress! + received, target.count - received)
      guard part > 0 else { return false }
      received += part
    }
    return true
  }

  private func write(_ bytes: [UInt8]) { bytes.withUnsafeBytes { write($0) } }

  private func write(_ bytes: UnsafeRawBufferPointer) {
    var sent = 0
    while sent < bytes.count {
      let part = Glibc.write(socket, bytes.baseAddress! + sent, bytes.count - sent)
      guard part > 0 else { _exit(1) }
      sent += part
    }
  }
}
