// The fork server: a process that the worker forks before it has threads. It only forks and reaps decoder processes.

import CLinux
import FrameBatches
import Glibc

/// The process that forks decoders.
struct ForkServerProcess {
  enum Request: Int { case fork, forkConfined, reap }

  let control: Int32
  let limits: Limits
  let background: Colour

  func run() -> Never {
    // Ignore terminal signals here; exit when the worker's socket closes.
    for number in [SIGINT, SIGTERM, SIGHUP, SIGPIPE] { signal(number, SIG_IGN) }
    clinux_die_with_parent()
    let decoder = WarmUp.decoder(limits: limits, background: background)
    guard var addressSpace = Self.addressSpace else { _exit(1) }
    var readsVideos = false
    let null = unsafe open("/dev/null", O_RDWR)
    for descriptor: Int32 in 0...2 { dup2(null, descriptor) }
    dup2(control, 3)
    closefrom(4)
    var message = [0, 0]
    var descriptors: [Int32] = [-1, -1]
    let size = MemoryLayout<Int>.size
    while unsafe clinux_receive(3, &message, 2 * size, &descriptors) == 2 * size {
      var answer = 0
      let request = Request(rawValue: message[0])
      switch request {
      case .fork, .forkConfined:
        // A decoder without a limit of CPU time reads videos, and opens no library itself.
        if message[1] == 0, !readsVideos, (try? FormatLibrary.load()) != nil, let larger = Self.addressSpace {
          (readsVideos, addressSpace) = (true, larger)
        }
        let process = clinux_fork()
        if process == 0 {
          close(3)
          DecoderChild(
            socket: descriptors[0], memory: descriptors[1], limits: limits, decoder: decoder,
            addressSpace: addressSpace, mustBeConfined: request == .forkConfined, cpuSeconds: message[1]
          ).run()
        }
        answer = process > 0 ? Int(process) : -Int(errno)
      case .reap:
        var status: Int32 = 0
        answer = unsafe waitpid(Int32(message[1]), &status, 0) > 0 ? Int(status) : -1
      case nil: _exit(1)
      }
      for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
      guard unsafe clinux_send(3, &answer, size, nil, 0) == size else { break }
    }
    _exit(0)
  }

  /// The size of this process's address space in bytes; nil where the kernel does not tell.
  private static var addressSpace: UInt64? {
    // The first number is pages (proc_pid_statm(5)); the size of the file is 0.
    let file = unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 64)
    guard unsafe read(file, &text, text.count) > 0 else { return nil }
    let pages = UInt64(String(decoding: text.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self))
    return pages.map { $0 * UInt64(sysconf(Int32(_SC_PAGESIZE))) }
  }
}
