// The worker's side of a decoder process: a socket for questions and answers, and shared memory for pictures.

import CLinux
import FileSystem
import FrameBatches
import Glibc
import Synchronization

/// The reason why a decoder gave no answer.
package enum DecoderFailure: Error, Equatable {
  /// The timeout expired.
  case late
  /// The decoder read more bytes than permitted: the file makes it read the same parts again.
  case readLimitExceeded
  /// The process has ended.
  case gone
  /// The process crashed, or sent an invalid message; with the reason.
  case crashed(String)

  package static let malformed = DecoderFailure.crashed("it sent an invalid message")
}

/// Asks again in a new process after a failure: the machine may have stood still, or an earlier input may be to blame.
func retryingOnce<R>(_ ask: () throws -> R) throws -> R {
  do { return try ask() } catch is DecoderFailure { return try ask() }
}

/// The worker's side of a question: it answers the decoder's reads, and takes its output. An error that one of these closures
/// throws ends the question; the caller then has to end the decoder, too.
struct DecoderExchange {
  /// Reads up to `count` bytes of the file at an offset; returns none at its end.
  var input: (_ offset: Int, _ count: Int) throws -> [UInt8] = { _, _ in
    throw DecoderFailure.crashed("it asks for a file")
  }
  /// Takes a part of the result.
  var output: (inout WireReader) throws -> Void = { _ in throw DecoderFailure.malformed }
  /// Maximum bytes that the decoder may read.
  var inputBytes = 0
  /// Maximum steps that the decoder may report.
  var steps = 0
  /// Asked at every message, and twice a second.
  var cancellation: Cancellation = .never
}

/// One decoder. For one thread at a time.
package final class DecoderProcess: Sendable {
  let process: Int32
  let slots: PictureSlots
  private let socket: Int32
  /// The number of batches, or files, that it has worked on.
  let uses = Atomic(0)
  /// The CPU that it is pinned to; -1 for none.
  private let cpu = Atomic<Int32>(-1)

  /// Maximum bytes of a message, apart from its part of the result.
  private static let messageBytes = 65_536
  /// Maximum number of reads at the end of the file in one question.
  private static let maximumReadsAtEnd = 64

  init(process: Int32, socket: Int32, slots: PictureSlots) {
    (self.process, self.socket, self.slots) = (process, socket, slots)
  }

  deinit { close(socket) }

  /// - Throws: ``DecoderFailure`` when the decoder does not read all of it in time, ``Cancelled``.
  func send(_ bytes: [UInt8], ms: Int, cancellation: Cancellation = .never) throws {
    let deadline = MonotonicClock.milliseconds() + ms
    var sent = 0
    while true {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(socket, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      if count > 0 { sent += count }
      guard sent < bytes.count else { return }
      guard count > 0 || [EINTR, EAGAIN].contains(errno) else { throw DecoderFailure.gone }
      // The socket is full, and the decoder reads slowly or not at all.
      try cancellation.check()
      let remaining = deadline - MonotonicClock.milliseconds()
      guard remaining > 0 else { throw DecoderFailure.late }
      var waiting = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
      unsafe poll(&waiting, 1, Int32(min(remaining, 500)))
    }
  }

  /// Fills `bytes`, unless the decoder ends before, and returns the number of bytes received.
  ///
  /// - Throws: ``DecoderFailure`` when they do not arrive in time, ``Cancelled``.
  func receive(into bytes: inout [UInt8], ms: Int, cancellation: Cancellation = .never) throws -> Int {
    let deadline = MonotonicClock.milliseconds() + ms
    var received = 0
    while received < bytes.count {
      var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
      let remaining = max(0, deadline - MonotonicClock.milliseconds())
      guard unsafe poll(&waiting, 1, Int32(min(remaining, 500))) > 0 else {
        try cancellation.check()
        // Poll once more at the deadline: this process may have been suspended.
        if remaining == 0 { throw DecoderFailure.late }
        continue
      }
      let count = unsafe bytes.withUnsafeMutableBytes {
        unsafe read(socket, $0.baseAddress! + received, $0.count - received)
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      received += count
    }
    return received
  }

  /// The use of a question's limits so far.
  private struct Usage {
    /// Bytes of messages to and from the decoder, which measure its work.
    var movedBytes = 0
    /// Bytes of the file that the decoder has read.
    var readBytes = 0
    /// Reads at the end of the file, which return no bytes.
    var readsAtEnd = 0
    /// Steps that the decoder has reported.
    var steps = 0
    /// Milliseconds of waiting for the decoder.
    var waitedMs = 0

    /// The time that is left: a timeout for the question, one for each mebibyte moved, and one for each step.
    func remainingMs(timeout: Int) -> Int {
      let mebibytes = movedBytes >> 20
      return timeout * (1 + mebibytes + steps) - waitedMs
    }
  }

  /// Sends a question, serves the decoder's reads and output, and waits for the answer.
  ///
  /// - Parameter seconds: the timeout between two messages of the decoder. The whole question has the same time, and as much again
  ///   for each mebibyte that the decoder reads or writes and for each step that it reports.
  func ask(_ question: [UInt8], seconds: Int, _ exchange: DecoderExchange) throws -> WireReader {
    let affinity = pin()
    defer { clinux_unpin(affinity) }
    let timeout = 1_000 * seconds
    try send(question, ms: timeout, cancellation: exchange.cancellation)
    var usage = Usage()
    while true {
      let begun = MonotonicClock.milliseconds()
      let remaining = usage.remainingMs(timeout: timeout)
      guard remaining > 0 else { throw DecoderFailure.late }
      var message = try receive(ms: min(timeout, remaining), exchange.cancellation)
      usage.waitedMs += MonotonicClock.milliseconds() - begun
      usage.movedBytes += message.count
      switch try message.read(DecoderChannel.Message.self) {
      case .answer: return message
      case .output: try exchange.output(&message)
      case .step:
        usage.steps += 1
        guard usage.steps <= exchange.steps else { throw DecoderFailure.malformed }
      case .input: try answerRead(&message, exchange, &usage, timeout: timeout)
      }
      try exchange.cancellation.check()
    }
  }

  /// Sends the bytes of the file that the decoder asks for.
  private func answerRead(
    _ message: inout WireReader, _ exchange: DecoderExchange, _ usage: inout Usage, timeout: Int
  ) throws {
    let (offset, count): (Int, Int) = try (message.read(), message.read())
    guard offset >= 0, (1...DecoderChannel.partBytes).contains(count) else { throw DecoderFailure.malformed }
    let bytes = try exchange.input(offset, count)
    usage.readBytes += bytes.count
    usage.movedBytes += bytes.count
    usage.readsAtEnd += bytes.isEmpty ? 1 : 0
    // The file makes the decoder read the same parts again and again.
    guard usage.readBytes <= exchange.inputBytes, usage.readsAtEnd <= Self.maximumReadsAtEnd else {
      throw DecoderFailure.readLimitExceeded
    }
    var answer = WireWriter(capacity: bytes.count + 8)
    answer.put(bytes)
    try send(answer.bytes, ms: timeout, cancellation: exchange.cancellation)
  }

  /// Pins the decoder and this thread to the CPU that this thread runs on, and returns the thread's previous affinity mask.
  private func pin() -> clinux_cpu_set {
    var last = cpu.load(ordering: .relaxed)
    defer { cpu.store(last, ordering: .relaxed) }
    return unsafe clinux_pin(process, &last)
  }

  private func receive(ms: Int, _ cancellation: Cancellation) throws -> WireReader {
    var head = [UInt8](repeating: 0, count: 8)
    guard try receive(into: &head, ms: ms, cancellation: cancellation) == 8 else { throw DecoderFailure.gone }
    var reader = WireReader(head)
    let count = try reader.read(Int.self)
    guard (0...Self.messageBytes + DecoderChannel.partBytes).contains(count) else { throw DecoderFailure.malformed }
    var message = [UInt8](repeating: 0, count: count)
    guard try receive(into: &message, ms: ms, cancellation: cancellation) == count else { throw DecoderFailure.gone }
    return WireReader(message)
  }
}
