// A process that decodes, seen from the worker: a socket for questions and answers, and memory for pictures.

import CFFmpeg
import CLinux
import FileSystem
import FrameBatches
import Glibc
import Synchronization

/// No answer.
package enum DecoderFailure: Error, Equatable {
  /// In the time that there is.
  case late
  /// It read more bytes than permitted: the file makes it read the same parts again.
  case readLimitExceeded
  /// It has ended.
  case gone
  /// It crashed, or sent an invalid message; with the reason.
  case crashed(String)

  package static let malformed = DecoderFailure.crashed("it answers nonsense")
}

/// Asks again in a fresh process after a failure: the machine may have stood still, or an earlier input may be to blame.
func retryingOnce<R>(_ ask: () throws -> R) throws -> R {
  do { return try ask() } catch is DecoderFailure { return try ask() }
}

/// The worker's side of a question that a decoder works on: the decoder gets input, and gives output. An error that one of these
/// closures throws ends the question; then the decoder has to be ended, too.
package struct DecoderExchange {
  /// Some bytes of the file that is read, from an offset on; none at its end.
  package var input: (_ offset: Int, _ count: Int) throws -> [UInt8] = { _, _ in
    throw DecoderFailure.crashed("it asks for a file")
  }
  /// Takes a part of the result.
  package var output: (inout WireReader) throws -> Void = { _ in throw DecoderFailure.malformed }
  /// The most bytes that the decoder may read.
  var inputBytes = 0
  /// The most steps that the decoder may report.
  package var steps = 0
  /// Asked at every step, and twice a second.
  package var isCancelled: () -> Bool = { false }
}

/// One decoder. For one thread at a time.
package final class DecoderProcess: Sendable {
  package let process: Int32
  let slots: PictureSlots
  private let socket: Int32
  /// How many batches, or files, it has worked on.
  package let uses = Atomic(0)
  /// The CPU that it is pinned to; -1 for none.
  private let cpu = Atomic<Int32>(-1)

  /// Maximum bytes of a message beside its part of the result.
  private static let messageBytes = 65_536
  /// Maximum number of reads at the end of the file in one question.
  private static let maximumReadsAtEnd = 64

  init(process: Int32, socket: Int32, slots: PictureSlots) {
    (self.process, self.socket, self.slots) = (process, socket, slots)
  }

  deinit { close(socket) }

  /// - Throws: ``DecoderFailure`` when the decoder does not read all of it in that time, ``Cancelled``.
  package func send(_ bytes: [UInt8], ms: Int, isCancelled: () -> Bool = { false }) throws {
    let deadline = MonotonicClock.milliseconds() + ms
    var sent = 0
    while true {
      let count = bytes.withUnsafeBytes {
        Glibc.send(socket, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      if count > 0 { sent += count }
      guard sent < bytes.count else { return }
      guard count > 0 || [EINTR, EAGAIN].contains(errno) else { throw DecoderFailure.gone }
      // The socket is full, and the decoder reads slowly or not at all.
      if isCancelled() { throw Cancelled() }
      let left = deadline - MonotonicClock.milliseconds()
      guard left > 0 else { throw DecoderFailure.late }
      var waiting = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
      poll(&waiting, 1, Int32(min(left, 500)))
    }
  }

  /// Fills `bytes`, or what there is until the end.
  ///
  /// - Returns: how much it was.
  /// - Throws: ``DecoderFailure`` when it takes longer than that, ``Cancelled``.
  func receive(into bytes: inout [UInt8], ms: Int, isCancelled: () -> Bool = { false }) throws -> Int {
    let deadline = MonotonicClock.milliseconds() + ms
    var received = 0
    while received < bytes.count {
      var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
      let left = max(0, deadline - MonotonicClock.milliseconds())
      guard poll(&waiting, 1, Int32(min(left, 500))) > 0 else {
        if isCancelled() { throw Cancelled() }
        // Poll once more at the deadline: this process may have been suspended.
        if left == 0 { throw DecoderFailure.late }
        continue
      }
      let count = bytes.withUnsafeMutableBytes { read(socket, $0.baseAddress! + received, $0.count - received) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      received += count
    }
    return received
  }

  /// Asks, gives the decoder what it reads, takes what comes out of it, and waits for the answer.
  ///
  /// - Parameter seconds: the timeout between two messages of the decoder. The whole question has the same time, and as much again
  ///   for each mebibyte that the decoder reads or writes and for each step that it reports.
  package func ask(
    _ question: [UInt8], seconds: Int, _ exchange: DecoderExchange = DecoderExchange()
  ) throws -> WireReader {
    let affinity = pin()
    defer { clinux_unpin(affinity) }
    let silence = 1_000 * seconds
    try send(question, ms: silence, isCancelled: exchange.isCancelled)
    var (read, moved, ends, steps, waited) = (0, 0, 0, 0, 0)
    while true {
      let begun = MonotonicClock.milliseconds()
      let left = silence * (1 + moved >> 20 + steps) - waited
      guard left > 0 else { throw DecoderFailure.late }
      var message = try receive(ms: min(silence, left), exchange.isCancelled)
      waited += MonotonicClock.milliseconds() - begun
      moved += message.count
      switch try message.read(DecoderChannel.Message.self) {
      case .answer: return message
      case .output: try exchange.output(&message)
      case .step:
        steps += 1
        guard steps <= exchange.steps else { throw DecoderFailure.malformed }
      case .input:
        let (offset, count): (Int, Int) = (try message.read(), try message.read())
        guard offset >= 0, (1...DecoderChannel.partBytes).contains(count) else { throw DecoderFailure.malformed }
        let bytes = try exchange.input(offset, count)
        read += bytes.count
        moved += bytes.count
        ends += bytes.isEmpty ? 1 : 0
        // The file makes the decoder read in circles.
        guard read <= exchange.inputBytes, ends <= Self.maximumReadsAtEnd else {
          throw DecoderFailure.readLimitExceeded
        }
        var answer = WireWriter(capacity: bytes.count + 8)
        answer.put(bytes)
        try send(answer.bytes, ms: silence, isCancelled: exchange.isCancelled)
      }
      if exchange.isCancelled() { throw Cancelled() }
    }
  }

  /// Pins the decoder and this thread to the CPU that this thread runs on.
  ///
  /// - Returns: the thread's affinity mask from before.
  private func pin() -> clinux_cpu_set {
    var last = cpu.load(ordering: .relaxed)
    defer { cpu.store(last, ordering: .relaxed) }
    return clinux_pin(process, &last)
  }

  private func receive(ms: Int, _ isCancelled: () -> Bool) throws -> WireReader {
    var head = [UInt8](repeating: 0, count: 8)
    guard try receive(into: &head, ms: ms, isCancelled: isCancelled) == 8 else { throw DecoderFailure.gone }
    var reader = WireReader(head)
    let count = try reader.read(Int.self)
    guard (0...Self.messageBytes + DecoderChannel.partBytes).contains(count) else { throw DecoderFailure.malformed }
    var message = [UInt8](repeating: 0, count: count)
    guard try receive(into: &message, ms: ms, isCancelled: isCancelled) == count else { throw DecoderFailure.gone }
    return WireReader(message)
  }
}

/// Memory that a worker and its decoder share: room for some pictures, each used by one at a time.
package final class PictureSlots: Sendable {
  /// Two pictures that are still shown or compared with, one that is being decoded, and one for want of the others.
  package static let indices = 0..<4
  /// More is given back to the system.
  private static let keptBytes = 32 << 20

  /// The memory, as others may map it.
  package let descriptor: Int32
  private nonisolated(unsafe) let start: UnsafeMutablePointer<UInt8>
  /// Of one, in bytes.
  package let size: Int
  private let state = Mutex(State())

  private struct State {
    /// How much of each has been written, in bytes; nil when it is unknown.
    var written: [Int]? = indices.map { _ in 0 }
    /// How much of each has been mapped for writing, in bytes.
    var populated = indices.map { _ in 0 }
    /// Those that hold a picture in use.
    var taken: Set<Int> = []
  }

  /// Maps a file that was made for this, and owns it.
  init(_ memory: Int32, limits: Limits) throws {
    size = Self.size(limits)
    descriptor = memory
    let all = Self.indices.count * size
    try check("ftruncate", "decoder") { ftruncate(memory, all) }
    // The size is fixed, so that neither side can truncate it.
    try check("fcntl", "decoder") { clinux_fix_size(memory) }
    guard let mapped = mmap(nil, all, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0), mapped != MAP_FAILED else {
      throw DiskError("mmap", "decoder")
    }
    start = mapped.assumingMemoryBound(to: UInt8.self)
  }

  deinit {
    munmap(start, Self.indices.count * size)
    close(descriptor)
  }

  /// Clears the memory for reuse, which costs less than new memory.
  ///
  /// - Returns: whether it is; not while a picture is in use, nor when it is large or the written size is unknown.
  func clear() -> Bool {
    state.withLock { state in
      guard let written = state.written, written.reduce(0, +) <= Self.keptBytes, state.taken.isEmpty else {
        return false
      }
      for (index, bytes) in written.enumerated() {
        memset(start(of: index), 0, bytes)
        // A decoder that was taken over may have written further than it said.
        guard clinux_punch(descriptor, index * size + bytes, size - bytes) == 0 else { return false }
      }
      state.written = Self.indices.map { _ in 0 }
      return true
    }
  }

  /// Records that a picture of so many bytes was written there; nil where the size is not known.
  package func note(_ index: Int, bytes: Int?) {
    state.withLock { state in
      guard let bytes, let before = state.written?[index] else {
        state.written = nil
        return
      }
      state.written?[index] = max(before, bytes)
    }
  }

  /// 4:2:0 with sides as decoders round them up, whole pages.
  private static func size(_ limits: Limits) -> Int {
    let pixels = limits.pixels + 256 * limits.side + 256 * 256
    return (pixels * 3 / 2 + 4_095) / 4_096 * 4_096
  }

  /// Returns a slot that is not in use; or 0, whose picture has to be copied before the next is asked for.
  package func free() -> Int {
    state.withLock { state in Self.indices.dropFirst().first { !state.taken.contains($0) } ?? 0 }
  }

  func take(_ index: Int) { state.withLock { _ = $0.taken.insert(index) } }

  /// - Parameter memory: where the slot starts.
  func release(_ memory: UnsafeMutablePointer<UInt8>) {
    state.withLock { _ = $0.taken.remove((memory - start) / size) }
  }

  package func start(of index: Int) -> UnsafeMutablePointer<UInt8> { start + index * size }

  /// Maps the first bytes of a slot for writing; where the kernel cannot do that at once, it does so by faults.
  private func populate(_ index: Int, _ bytes: Int) {
    state.withLock { state in
      guard state.populated[index] < bytes else { return }
      state.populated[index] = bytes
      _ = clinux_populate(start(of: index), bytes)
    }
  }

  /// A slot to decode into.
  package func space(of index: Int) -> SharedPictureBuffer {
    SharedPictureBuffer(memory(of: index)) { [self] in populate(index, $0) }
  }

  package func memory(of index: Int) -> UnsafeMutableBufferPointer<UInt8> {
    UnsafeMutableBufferPointer(start: start(of: index), count: size)
  }
}
