// Untrusted archives, images and videos are decoded in a process without files and network, and with bounded memory, one for each
// session. A host, forked from the worker before it has threads, forks those processes: that costs a millisecond, where starting
// the program anew would cost a hundred.

import CLinux
import FileSystem
import FrameBatches
import Glibc
import Synchronization

/// The sandbox cannot work.
package struct SandboxError: Error, CustomStringConvertible {
  package let description: String

  package init(description: String) { self.description = description }
}

/// Forks processes that decode. For any thread.
public final class DecoderForkServer: Sendable {
  /// The socket to the fork server, which alternates requests and answers; -1 after a lost answer.
  private let control: Mutex<Int32>
  private let host: Int32
  /// Whether the kernel filters the system calls of decoders.
  public let isConfined: Bool
  package let limits: Limits
  /// Memory of decoders that have ended.
  private let retired = Mutex<[PictureSlots]>([])
  /// Idle decoders of sessions, the one idle for longest first.
  private let idle = Mutex<[Idle]>([])

  private struct Idle {
    let key: String
    let decoder: DecoderProcess
    /// In monotonic milliseconds.
    let since: Int
  }

  /// Maximum number of idle decoders, their maximum idle time, and the number of batches after which they are replaced.
  private static let (maximumIdle, idleMs, maximumUses) = (4, 10_000, 64)
  /// The timeout of the fork server, which needs some milliseconds.
  private static let hostSeconds = 60
  /// Seconds of CPU for a decoder of batches; one that needs more is replaced.
  private static let cpuSeconds = 600

  /// Forks the fork server. Call it while the process has a single thread.
  ///
  /// - Parameters:
  ///   - limits: what a picture may take; for the memory that a decoder gets, too.
  ///   - background: what is behind transparent pixels.
  ///   - readsVideos: whether videos are to be read, too.
  public init(limits: Limits, background: Colour = .black, readsVideos: Bool = false) throws {
    // Before the fork: a decoder opens no library.
    if readsVideos { try FormatLibrary.load() }
    guard try Directory(opening: "/proc/self/task").entries().count == 1 else {
      throw SandboxError(description: "the decoder fork server must start before any thread")
    }
    var sockets: [Int32] = [-1, -1]
    try check("socketpair", "decoder") { clinux_socket_pair(&sockets) }
    let process = clinux_fork()
    if process == 0 {
      close(sockets[0])
      Host(control: sockets[1], limits: limits, background: background).run()
    }
    close(sockets[1])
    guard process > 0 else { throw DiskError("fork", "decoder") }
    var limit = timeval(tv_sec: Self.hostSeconds, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(sockets[0], SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    host = process
    control = Mutex(sockets[0])
    self.limits = limits
    isConfined = try Self.probe(control, limits)
  }

  deinit {
    control.withLock { control in if control >= 0 { close(control) } }
    var status: Int32 = 0
    waitpid(host, &status, 0)
  }

  /// The end of a decoder.
  package enum Ending: Equatable {
    /// We killed it.
    case killed
    case signal(Int32)
    /// It could not start.
    case gaveUp
  }

  /// Returns whether the kernel ends a decoder that makes a forbidden system call.
  ///
  /// Tries twice, like a decoder with a frame: the machine may stand still for a while, or kill a process.
  /// - Throws: ``SandboxError`` when no decoder can be started.
  private static func probe(_ control: borrowing Mutex<Int32>, _ limits: Limits) throws -> Bool {
    if let isConfined = try? probeOnce(control, limits) { return isConfined }
    return try probeOnce(control, limits)
  }

  private static func probeOnce(_ control: borrowing Mutex<Int32>, _ limits: Limits) throws -> Bool {
    let child = try fork(control, try newSlots(limits), cpuSeconds: cpuSeconds)
    var question = WireWriter()
    question.put(DecoderChild.Request.probe)
    try? child.send(question.framed, ms: 1_000 * limits.decodeSeconds)
    var answer = [UInt8](repeating: 0, count: 1)
    // Throws when there is no answer in time; then the child is still there, and `end` kills it.
    let received = try? child.receive(into: &answer, ms: 1_000 * limits.decodeSeconds)
    switch try end(control, child) {
    case .signal(SIGSYS): return true
    case _ where received == 1: return false
    case _ where received == nil:
      throw SandboxError(description: "a decoder does not answer within \(limits.decodeSeconds) s")
    case let ending: throw SandboxError(description: "a decoder cannot be started (\(ending))")
    }
  }

  /// A decoder that has seen bytes of this session only: an idle one, or a new one.
  ///
  /// - Parameters:
  ///   - session: its name, or what else tells whose bytes they are. nil for a new one.
  ///   - isLimited: whether its CPU time is bounded; a film may take any.
  package func decoder(for session: String?, isLimited: Bool = true) throws -> DecoderProcess {
    endIdle()
    let waiting = session.flatMap { session in
      idle.withLock { idle in idle.lastIndex { $0.key == session }.map { idle.remove(at: $0).decoder } }
    }
    if let waiting { return waiting }
    // If a picture in it is still in use, it goes with that.
    let cleared = retired.withLock { $0.popLast() }.flatMap { $0.clear() ? $0 : nil }
    return try Self.fork(
      control, cleared ?? Self.newSlots(limits), cpuSeconds: isLimited ? Self.cpuSeconds : 0)
  }

  /// Keeps an idle decoder for its session. It must have answered all questions.
  package func keep(_ decoder: DecoderProcess, for session: String) {
    let uses = decoder.uses.add(1, ordering: .relaxed).newValue
    let superfluous = idle.withLock { idle -> DecoderProcess? in
      if uses >= Self.maximumUses { return decoder }
      idle.append(Idle(key: session, decoder: decoder, since: MonotonicClock.milliseconds()))
      // Two threads may work on one session. Archives bring a new decoder each time, which must not displace other sessions'.
      if let older = idle.firstIndex(where: { $0.key == session }), idle.count(where: { $0.key == session }) > 2 {
        return idle.remove(at: older).decoder
      }
      return idle.count > Self.maximumIdle ? idle.removeFirst().decoder : nil
    }
    if let superfluous { _ = try? end(superfluous) }
  }

  /// Ends decoders whose idle time is over.
  public func endIdle() {
    let latest = MonotonicClock.milliseconds() - Self.idleMs
    let gone = idle.withLock { idle in
      let gone = idle.filter { $0.since < latest }
      idle.removeAll { $0.since < latest }
      return gone
    }
    for decoder in gone { _ = try? end(decoder.decoder) }
  }

  /// Ends a decoder.
  ///
  /// - Returns: what had happened to it before.
  package func end(_ child: DecoderProcess) throws -> Ending {
    let ending = try Self.end(control, child)
    // No confined process can see it any more.
    if isConfined { retired.withLock { $0.append(child.slots) } }
    return ending
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
    _ control: borrowing Mutex<Int32>, _ slots: PictureSlots, cpuSeconds: Int
  ) throws -> DecoderProcess {
    var sockets: [Int32] = [-1, -1]
    try check("socketpair", "decoder") { clinux_stream_pair(&sockets) }
    defer { close(sockets[1]) }
    do {
      let process = try ask(control, .fork, cpuSeconds, [sockets[1], slots.descriptor])
      guard process > 0 else { throw DiskError("fork", "decoder", code: Int32(-process)) }
      return DecoderProcess(process: Int32(process), socket: sockets[0], slots: slots)
    } catch {
      close(sockets[0])
      throw error
    }
  }

  private static func end(_ control: borrowing Mutex<Int32>, _ child: DecoderProcess) throws -> Ending {
    // It is the host's child, and not yet waited for: the number is still its own.
    kill(child.process, SIGKILL)
    let status = try ask(control, .reap, Int(child.process), [])
    let signal = Int32(status & 0x7F)
    return signal == SIGKILL ? .killed : signal == 0 ? .gaveUp : .signal(signal)
  }

  /// Ends a decoder that did not answer.
  ///
  /// - Returns: the error to throw: how it ended, where it did so by itself.
  package func end(_ child: DecoderProcess, after error: any Error) throws -> any Error {
    let ending = try end(child)
    guard let failure = error as? DecoderFailure, failure == .gone else { return error }
    // Without a signal of its own it is the machine, which was short of something, or a process killer.
    // One that has waited may have been killed meanwhile; that is for the next one to try.
    guard case .signal(let signal) = ending else {
      return child.uses.load(ordering: .relaxed) > 0 ? failure : DecoderOutOfResources()
    }
    return DecoderFailure.crashed(signal == SIGXCPU ? "its time was up" : "signal \(signal)")
  }

  private static func ask(
    _ control: borrowing Mutex<Int32>, _ request: Host.Request, _ number: Int, _ descriptors: [Int32]
  ) throws -> Int {
    try control.withLock { control in
      let message = [request.rawValue, number]
      var answer = 0
      var none: [Int32] = [-1, -1]
      let size = MemoryLayout<Int>.size
      guard control >= 0,
        clinux_send(control, message, 2 * size, descriptors, Int32(descriptors.count)) == 2 * size,
        clinux_receive(control, &answer, size, &none) == size
      else {
        // An answer that comes too late must not be taken for the next one's. The host ends when its socket is closed.
        if control >= 0 { close(control) }
        control = -1
        throw SandboxError(description: "the decoder fork server is gone, or hangs; start the worker again")
      }
      return answer
    }
  }
}

/// The host's side.
private struct Host {
  enum Request: Int { case fork, reap }

  let control: Int32
  let limits: Limits
  let background: Colour

  func run() -> Never {
    // Ignore terminal signals here; exit when the worker's socket closes.
    for number in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] { signal(number, SIG_IGN) }
    clinux_die_with_parent()
    let decoder = WarmUp.decoder(limits: limits, background: background)
    let nowhere = open("/dev/null", O_RDWR)
    for descriptor: Int32 in 0...2 { dup2(nowhere, descriptor) }
    dup2(control, 3)
    closefrom(4)
    var message = [0, 0]
    var descriptors: [Int32] = [-1, -1]
    let size = MemoryLayout<Int>.size
    while clinux_receive(3, &message, 2 * size, &descriptors) == 2 * size {
      var answer = 0
      switch Request(rawValue: message[0]) {
      case .fork:
        let process = clinux_fork()
        if process == 0 {
          close(3)
          DecoderChild(
            socket: descriptors[0], memory: descriptors[1], limits: limits, decoder: decoder, cpuSeconds: message[1]
          ).run()
        }
        answer = process > 0 ? Int(process) : -Int(errno)
      case .reap:
        var status: Int32 = 0
        answer = waitpid(Int32(message[1]), &status, 0) > 0 ? Int(status) : -1
      case nil: _exit(1)
      }
      for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
      guard clinux_send(3, &answer, size, nil, 0) == size else { break }
    }
    _exit(0)
  }
}
