// Untrusted archives, images and videos are decoded in processes without files and network, and with bounded memory, one for each
// session. The fork server, forked from the worker before it has threads, forks those processes: that takes a millisecond, and
// starting the program again would take a hundred.

import CLinux
import FileSystem
import FrameBatches
import Glibc
import Synchronization

/// The sandbox cannot work.
package struct SandboxError: ClassifiedError {
  package var kind: Failure.Kind { .environment }
  package let description: String

  package init(description: String) { self.description = description }
}

/// Starts, keeps and ends decoder processes. For any thread.
public final class DecoderForkServer: Sendable {
  /// The socket to the fork server, which alternates requests and answers; -1 after a lost answer.
  private let control: Mutex<Int32>
  private let process: Int32
  /// Whether the kernel filters the system calls of decoders.
  public let isConfined: Bool
  /// Whether the CPU time of the first decoder is bounded.
  private let isFirstLimited: Bool
  package let limits: Limits
  /// Memory of decoders that have ended, for reuse.
  private let retired = Mutex<[Retired]>([])
  /// Idle decoders, the one idle for longest first.
  private let idle = Mutex<[Idle]>([])

  private struct Retired {
    let slots: PictureSlots
    /// False while a picture in there is in use.
    var isClear = false
  }

  private struct Idle {
    /// Nil for the first decoder until it gets a session.
    let key: String?
    /// The digest of the file that it has open, if any.
    let file: String?
    let decoder: DecoderProcess
    /// In monotonic milliseconds.
    let since: Int
  }

  /// Maximum number of idle decoders, their maximum idle time, and the number of batches after which they are replaced.
  private static let (maximumIdle, idleMs, maximumUses) = (4, 10_000, 64)
  /// Maximum number of memories of ended decoders that are kept for new ones.
  private static let maximumRetired = 4
  /// Maximum bytes of the pictures of idle decoders while another session gets a decoder.
  private static let maximumIdleBytes = 8 << 20
  /// The timeout of the fork server, which needs some milliseconds.
  private static let timeoutSeconds = 60
  /// Maximum CPU seconds of a decoder of batches.
  private static let cpuSeconds = 600

  /// Forks the fork server. Call it while the process has a single thread.
  ///
  /// - Parameters:
  ///   - limits: the limits of pictures, from which a decoder's memory limit is computed.
  ///   - background: the colour behind transparent pixels.
  ///   - readsVideos: whether decoders read videos, too.
  /// - Throws: an error if the process has another thread already, or no decoder can be started.
  public init(limits: Limits, background: Colour = .black, readsVideos: Bool = false) throws {
    // Before the fork: decoders inherit it.
    FFmpegLog.silence()
    // Before the fork: a decoder opens no library. The fork server loads it when the first video is read.
    if readsVideos { try FormatLibrary.load() } else { FormatLibrary.library.prepareFork() }
    guard try Directory(opening: "/proc/self/task").entries().count == 1 else {
      throw SandboxError(description: "the decoder fork server must start before any thread")
    }
    var sockets: [Int32] = [-1, -1]
    try check("socketpair", "decoder") { unsafe clinux_socket_pair(&sockets) }
    process = clinux_fork()
    if process == 0 {
      close(sockets[0])
      ForkServerProcess(control: sockets[1], limits: limits, background: background).run()
    }
    close(sockets[1])
    guard process > 0 else { throw DiskError("fork", "decoder") }
    var limit = timeval(tv_sec: Self.timeoutSeconds, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      unsafe setsockopt(sockets[0], SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    control = Mutex(sockets[0])
    self.limits = limits
    // Retry once: the machine may have stood still, or killed a process.
    let first: (decoder: DecoderProcess, isConfined: Bool)
    do {
      first = try Self.firstDecoder(control, limits, readsVideos)
    } catch {
      first = try Self.firstDecoder(control, limits, readsVideos)
    }
    isConfined = first.isConfined
    isFirstLimited = !readsVideos
    // It may be killed while it waits, as any idle decoder.
    first.decoder.uses.store(1, ordering: .relaxed)
    idle.withLock {
      $0 = [Idle(key: nil, file: nil, decoder: first.decoder, since: MonotonicClock.milliseconds())]
    }
  }

  deinit {
    // So that their CPU time is counted as this process's: the fork server exits without a wait for its children.
    for idle in idle.withLock({ $0 }) { _ = try? end(idle.decoder) }
    control.withLock { control in if control >= 0 { close(control) } }
    var status: Int32 = 0
    unsafe waitpid(process, &status, 0)
  }

  /// Starts the first decoder, and asks it whether the kernel filters its system calls.
  private static func firstDecoder(
    _ control: borrowing Mutex<Int32>, _ limits: Limits, _ readsVideos: Bool
  ) throws -> (decoder: DecoderProcess, isConfined: Bool) {
    let decoder = try fork(
      control, try newSlots(limits), cpuSeconds: readsVideos ? 0 : cpuSeconds, mustBeConfined: false)
    do {
      return (decoder, try decoder.ask(ConfinementRequest(), seconds: limits.decodeSeconds))
    } catch {
      let signal = try end(control, decoder)
      throw SandboxError(
        description: error as? DecoderFailure == .late
          ? "a decoder does not answer within \(limits.decodeSeconds) s"
          : "a decoder cannot be started (\(signal == 0 ? "it exited" : "signal \(signal)"))")
    }
  }

  /// Returns a decoder that has seen bytes of this session only: an idle one, or a new one.
  ///
  /// - Parameters:
  ///   - session: the owner of the bytes: a session, or a file; nil for a new decoder.
  ///   - file: the digest of a file; a process that has it open is preferred.
  ///   - isLimited: whether its CPU time is bounded; a film may take any time.
  package func decoder(for session: String?, file: String? = nil, isLimited: Bool = true) throws -> DecoderProcess {
    endIdle()
    let waiting = session.flatMap { session in
      idle.withLock { idle in
        let index = idle.lastIndex { $0.key == session && $0.file == file } ?? idle.lastIndex { $0.key == session }
        return index.map { idle.remove(at: $0).decoder }
      }
    }
    if let waiting { return waiting }
    let first = idle.withLock { idle in
      idle.firstIndex { $0.key == nil && isLimited == isFirstLimited }.map { idle.remove(at: $0).decoder }
    }
    if let first { return first }
    endSurplus()
    let cleared = retired.withLock { retired in
      retired.lastIndex(where: \.isClear).map { retired.remove(at: $0).slots }
    }
    return try Self.fork(
      control, cleared ?? Self.newSlots(limits), cpuSeconds: isLimited ? Self.cpuSeconds : 0, mustBeConfined: isConfined
    )
  }

  /// Keeps an idle decoder for its session. It must have answered all questions.
  ///
  /// - Parameter file: the digest of the file that it has open, if any.
  package func keep(_ decoder: DecoderProcess, for session: String, file: String? = nil) {
    let uses = decoder.uses.add(1, ordering: .relaxed).newValue
    let surplus = idle.withLock { idle -> DecoderProcess? in
      if uses >= Self.maximumUses { return decoder }
      idle.append(Idle(key: session, file: file, decoder: decoder, since: MonotonicClock.milliseconds()))
      // Two threads may work on one session. Archives bring a new decoder each time, which must not displace other sessions'.
      if let older = idle.firstIndex(where: { $0.key == session }), idle.count(where: { $0.key == session }) > 2 {
        return idle.remove(at: older).decoder
      }
      return idle.count > Self.maximumIdle ? idle.removeFirst().decoder : nil
    }
    if let surplus { _ = try? end(surplus) }
  }

  /// Ends idle decoders, so that another one has room beside them.
  private func endSurplus() {
    let gone = idle.withLock { idle in
      let count = Self.surplus(idle.map(\.decoder.slots.usedBytes))
      defer { idle.removeFirst(count) }
      return idle.prefix(count)
    }
    for decoder in gone { _ = try? end(decoder.decoder) }
  }

  /// Returns the number of idle decoders, oldest first, that have no room beside another one.
  ///
  /// - Parameter usedBytes: of the pictures of each. The other one is expected to have pictures as large as those of the last one.
  static func surplus(_ usedBytes: [Int]) -> Int {
    var bytes = usedBytes.reduce(usedBytes.last ?? 0, +)
    return usedBytes.prefix { used in
      defer { bytes -= used }
      return bytes > maximumIdleBytes
    }.count
  }

  /// Clears the memory of ended decoders, except for pictures that are still in use: their session may be deleted before another
  /// decoder gets the memory.
  private func clearRetired() {
    retired.withLock { retired in
      for index in retired.indices.reversed() where !retired[index].isClear && !retired[index].slots.isInUse {
        if retired[index].slots.clear() { retired[index].isClear = true } else { retired.remove(at: index) }
      }
    }
  }

  /// Ends decoders that have been idle for too long, and clears their memory.
  public func endIdle() {
    let latest = MonotonicClock.milliseconds() - Self.idleMs
    let gone = idle.withLock { idle in
      let gone = idle.filter { $0.since < latest }
      idle.removeAll { $0.since < latest }
      return gone
    }
    for decoder in gone { _ = try? end(decoder.decoder) }
    clearRetired()
  }

  /// Ends a decoder, and returns the signal that ended it: `SIGKILL` unless it had ended before, and 0 when it had exited.
  func end(_ child: DecoderProcess) throws -> Int32 {
    let signal = try Self.end(control, child)
    // A confined decoder cannot pass its memory on, so no process sees it any more.
    if isConfined {
      retired.withLock { retired in
        if retired.count < Self.maximumRetired { retired.append(Retired(slots: child.slots)) }
      }
      clearRetired()
    }
    return signal
  }

  static func newSlots(_ limits: Limits) throws -> PictureSlots {
    let memory = clinux_memory_file()
    guard memory >= 0 else { throw DiskError("memfd_create", "decoder") }
    do {
      return try PictureSlots(memory, limits: limits)
    } catch {
      close(memory)
      throw error
    }
  }

  private static func fork(
    _ control: borrowing Mutex<Int32>, _ slots: PictureSlots, cpuSeconds: Int, mustBeConfined: Bool
  ) throws -> DecoderProcess {
    var sockets: [Int32] = [-1, -1]
    try check("socketpair", "decoder") { unsafe clinux_stream_pair(&sockets) }
    defer { close(sockets[1]) }
    do {
      let process = try ask(
        control, mustBeConfined ? .forkConfined : .fork, cpuSeconds, [sockets[1], slots.descriptor])
      guard process > 0 else { throw DiskError("fork", "decoder", code: Int32(-process)) }
      return DecoderProcess(process: Int32(process), socket: sockets[0], slots: slots)
    } catch {
      close(sockets[0])
      throw error
    }
  }

  private static func end(_ control: borrowing Mutex<Int32>, _ child: DecoderProcess) throws -> Int32 {
    // The fork server has not reaped the child yet, so no other process has its number.
    kill(child.process, SIGKILL)
    return Int32(try ask(control, .reap, Int(child.process), []) & 0x7F)
  }

  /// Ends a decoder that did not answer, and returns the error to throw: the cause of its end when it ended by itself.
  func end(_ child: DecoderProcess, after error: any Error) throws -> any Error {
    let signal = try end(child)
    guard let failure = error as? DecoderFailure, failure == .gone else { return error }
    // Without a signal of its own, the machine lacked a resource, or another process killed the decoder.
    // A decoder that was idle may have been killed meanwhile; the caller then retries with a new one.
    guard signal != SIGKILL, signal != 0 else {
      return child.uses.load(ordering: .relaxed) > 0 ? failure : DecoderOutOfResources()
    }
    return DecoderFailure.crashed(signal == SIGXCPU ? "its time was up" : "signal \(signal)")
  }

  private static func ask(
    _ control: borrowing Mutex<Int32>, _ request: ForkServerProcess.Request, _ number: Int, _ descriptors: [Int32]
  ) throws -> Int {
    try control.withLock { control in
      let message = [request.rawValue, number]
      var answer = 0
      var none: [Int32] = [-1, -1]
      let size = MemoryLayout<Int>.size
      guard control >= 0,
        unsafe clinux_send(control, message, 2 * size, descriptors, Int32(descriptors.count)) == 2 * size,
        unsafe clinux_receive(control, &answer, size, &none) == size
      else {
        // A late answer must not be taken for the answer to the next request. The fork server ends when its socket is closed.
        if control >= 0 { close(control) }
        control = -1
        throw SandboxError(description: "the decoder fork server is gone, or hangs; start the worker again")
      }
      return answer
    }
  }
}
