// The messages of a decoder's process. Each has its length first, and then its kind.

import Glibc

/// The decoder's end of its socket. Whoever started it is not to be distrusted; when that one is gone, the process ends.
package struct DecoderChannel {
  package enum Message: Int {
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
    var message = WireWriter()
    message.put(Message.input.rawValue)
    message.put(offset)
    message.put(min(target.count, Self.partBytes))
    write(message.framed)
    guard let count = length(), count <= target.count else { _exit(1) }
    guard read(UnsafeMutableRawBufferPointer(rebasing: target[..<count])) else { _exit(1) }
    return count
  }

  /// Reports progress of work that sends no result for a long time.
  package func step() {
    var message = WireWriter()
    message.put(Message.step.rawValue)
    write(message.framed)
  }

  /// Sends a part of the result.
  package func output(_ body: (inout WireWriter) -> Void) {
    var message = WireWriter()
    message.put(Message.output.rawValue)
    body(&message)
    write(message.framed)
  }

  /// Sends bytes of the result, in as many parts as it takes.
  ///
  /// - Parameter head: begins each of them.
  package func output(_ bytes: UnsafeRawBufferPointer, behind head: (inout WireWriter) -> Void) {
    for start in stride(from: 0, to: bytes.count, by: Self.partBytes) {
      let part = UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + Self.partBytes)])
      var message = WireWriter()
      message.put(Message.output.rawValue)
      head(&message)
      message.put(part.count)
      var length = WireWriter()
      length.put(message.bytes.count + part.count)
      write(length.bytes + message.bytes)
      write(part)
    }
  }

  package func answer(_ body: (inout WireWriter) -> Void) {
    var message = WireWriter()
    message.put(Message.answer.rawValue)
    body(&message)
    write(message.framed)
  }

  private func length() -> Int? {
    guard let head = read(8) else { return nil }
    var reader = WireReader(head)
    guard let count = try? reader.int(), count >= 0 else { return nil }
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
