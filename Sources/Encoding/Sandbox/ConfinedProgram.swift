// Runs a program of another package as a process of its own: it reads its input from a socket, and answers there. It cannot write
// files, use the network or start processes, and reads its own files only. Its memory, CPU time, answer and time are limited.

import CLinux
import FileSystem
import Glibc

/// The result of a program that ran.
enum ProgramEnd: Equatable {
  case exited(Int32)
  case signal(Int32)
  /// Ended by this process: it ran, or answered, for too long.
  case late
  case excessive
}

struct ConfinedProgram: Sendable {
  /// The path of the program, without links.
  let path: String
  /// Further files and directories that it may read.
  let readable: [String]
  let environment: [String]
  let confinement: Confinement

  /// How much the kernel confines it.
  enum Confinement: Sendable, Equatable {
    /// Its files are named (Landlock), and its system calls are filtered.
    case full
    /// Its system calls are filtered: it can read files that this user may read, and write none.
    case filtered
    /// Only limits.
    case none
  }

  struct Limits: Sendable {
    let memoryBytes: Int
    let cpuSeconds: Int
    let wallSeconds: Int
    let outputBytes: Int
  }

  /// The most that this kernel can confine a program.
  static var confinement: Confinement {
    if !clinux_can_filter() { return .none }
    return clinux_landlock_version() > 0 ? .full : .filtered
  }

  /// Libraries and their loader, on Debian and its relatives.
  private static let libraries = [
    "/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.preload",
  ]

  /// Runs it to its end.
  ///
  /// - Parameter cancellation: asked several times a second.
  /// - Throws: ``DiskError`` if no process can be started, ``SandboxError`` if it cannot be confined, ``Cancelled``.
  func run(
    _ arguments: [String], input: [UInt8], limits: Limits, cancellation: Cancellation
  ) throws -> (end: ProgramEnd, output: [UInt8]) {
    var sockets: [Int32] = [-1, -1]
    try check("socketpair", path) { unsafe clinux_stream_pair(&sockets) }
    let process = start(arguments, limits, sockets[1])
    let code = errno
    close(sockets[1])
    defer { close(sockets[0]) }
    guard process > 0 else { throw DiskError("fork", path, code: code) }
    var conversation = Conversation(socket: sockets[0], input: input, limits: limits)
    do {
      let stopped = try conversation.run(cancellation, path)
      if stopped != nil { Self.stop(process) }
      let end = try stopped ?? Self.wait(for: process, until: conversation.deadlineMs, cancellation)
      if end == .exited(Int32(CLINUX_NOT_CONFINED)) {
        throw SandboxError(description: "\(path) cannot be confined by this kernel; see --sandbox")
      }
      return (end, conversation.output)
    } catch {
      Self.stop(process)
      throw error
    }
  }

  private func start(_ arguments: [String], _ limits: Limits, _ socket: Int32) -> Int32 {
    let program = CStrings([path])
    let words = CStrings([lastComponent(of: path)] + arguments)
    let variables = CStrings(environment)
    let executable = CStrings([path] + Self.libraries)
    let readable = CStrings(readable)
    defer { for list in [program, words, variables, executable, readable] { list.free() } }
    var facts = unsafe clinux_program()
    unsafe facts.path = UnsafePointer(program.pointer[0])
    unsafe facts.arguments = UnsafePointer(words.pointer)
    unsafe facts.environment = UnsafePointer(variables.pointer)
    unsafe facts.executable = UnsafeRawPointer(executable.pointer).assumingMemoryBound(to: UnsafePointer<CChar>?.self)
    unsafe facts.readable = UnsafeRawPointer(readable.pointer).assumingMemoryBound(to: UnsafePointer<CChar>?.self)
    unsafe facts.memory_bytes = UInt64(limits.memoryBytes)
    unsafe facts.cpu_seconds = UInt64(limits.cpuSeconds)
    unsafe facts.is_filtered = confinement != .none
    unsafe facts.is_landlocked = confinement == .full
    return unsafe clinux_start_program(&facts, socket)
  }

  /// Waits for a process that has closed its side: it may run on for all that.
  private static func wait(
    for process: Int32, until deadlineMs: Int, _ cancellation: Cancellation
  ) throws(Cancelled) -> ProgramEnd {
    var pause: UInt32 = 200
    while true {
      if let end = reap(process, Int32(WNOHANG)) { return end }
      if MonotonicClock.milliseconds() >= deadlineMs {
        stop(process)
        return .late
      }
      try cancellation.check()
      usleep(pause)
      pause = min(2 * pause, 20_000)
    }
  }

  /// Kills a process, if it is one still, and reaps it.
  private static func stop(_ process: Int32) {
    // Its number may be another's once it was reaped.
    guard reap(process, Int32(WNOHANG)) == nil else { return }
    kill(process, SIGKILL)
    _ = reap(process, 0)
  }

  /// - Returns: nil if it still runs.
  private static func reap(_ process: Int32, _ options: Int32) -> ProgramEnd? {
    var status: Int32 = 0
    var reaped = unsafe waitpid(process, &status, options)
    while reaped < 0 && errno == EINTR { reaped = unsafe waitpid(process, &status, options) }
    // Another thread of the program has reaped it: judge it by its answer.
    if reaped < 0 { return .exited(0) }
    if reaped == 0 { return nil }
    return clinux_has_exited(status) ? .exited(clinux_exit_status(status)) : .signal(clinux_end_signal(status))
  }
}

/// Strings for C, with a null pointer behind them. It is safe: only its pointer is unsafe.
@safe private struct CStrings {
  let pointer: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  private let count: Int

  init(_ strings: [String]) {
    count = strings.count
    unsafe pointer = .allocate(capacity: count + 1)
    for (index, string) in strings.enumerated() { unsafe pointer.advanced(by: index).initialize(to: strdup(string)) }
    unsafe pointer.advanced(by: count).initialize(to: nil)
  }

  func free() {
    for index in 0..<count { unsafe Glibc.free(pointer[index]) }
    unsafe pointer.deallocate()
  }
}

/// Writes the input and reads the output at the same time.
private struct Conversation {
  let socket: Int32
  let input: [UInt8]
  let limits: ConfinedProgram.Limits
  let deadlineMs: Int
  private(set) var output: [UInt8] = []

  init(socket: Int32, input: [UInt8], limits: ConfinedProgram.Limits) {
    (self.socket, self.input, self.limits) = (socket, input, limits)
    deadlineMs = MonotonicClock.milliseconds() + 1_000 * limits.wallSeconds
  }

  /// - Returns: why the program has to be ended; nil once it has closed its side.
  mutating func run(_ cancellation: Cancellation, _ path: String) throws -> ProgramEnd? {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    var sent = 0
    var isClosed = false
    if input.isEmpty { shutdown(socket, Int32(SHUT_WR)) }
    while !isClosed {
      try cancellation.check()
      if MonotonicClock.milliseconds() >= deadlineMs { return .late }
      let wanted = POLLIN | (sent < input.count ? POLLOUT : 0)
      var ready = pollfd(fd: socket, events: Int16(wanted), revents: 0)
      let count = unsafe poll(&ready, 1, 100)
      if count < 0 && errno != EINTR { throw DiskError("poll", path) }
      if count <= 0 { continue }
      if Int32(ready.revents) & Int32(POLLOUT) != 0 { sent = send(from: sent) }
      guard Int32(ready.revents) & Int32(POLLIN | POLLHUP | POLLERR) != 0 else { continue }
      let received = unsafe recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if received < 0 && (errno == EINTR || errno == EAGAIN) { continue }
      // A program that ends before it has read all resets the connection.
      isClosed = received <= 0
      if received > 0 { output += buffer[..<received] }
      if output.count > limits.outputBytes { return .excessive }
    }
    return nil
  }

  /// - Returns: the number of bytes sent so far; all of them if the program takes no more.
  private func send(from start: Int) -> Int {
    let count = unsafe input.withUnsafeBytes { bytes in
      unsafe Glibc.send(
        socket, bytes.baseAddress! + start, bytes.count - start,
        Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }
    if count < 0 && (errno == EINTR || errno == EAGAIN) { return start }
    let sent = count < 0 ? input.count : start + count
    if sent == input.count { shutdown(socket, Int32(SHUT_WR)) }
    return sent
  }
}
