import CLinux
import FileSystem
import Glibc
import Synchronization
import Testing

/// The socket between the worker and the decoder fork server.
@Suite struct ControlSocketTests {
  private final class Receiver: Sendable {
    let thread = Atomic<UInt>(0)
    let received = Atomic(0)
  }

  /// A receive with a timeout fails with EINTR when a process is stopped and continued, or when a signal handler runs.
  @Test func interruptedReceiveWaitsOn() throws {
    var sockets: [Int32] = [-1, -1]
    try #require(clinux_socket_pair(&sockets) == 0)
    var timeout = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    try #require(sigaction(SIGUSR2, &action, nil) == 0)
    let receiver = Receiver()
    let group = ThreadGroup()
    try group.start { [socket = sockets[0]] in
      receiver.thread.store(UInt(pthread_self()), ordering: .releasing)
      var (answer, none) = (0, [Int32](repeating: -1, count: 2))
      let size = clinux_receive(socket, &answer, MemoryLayout<Int>.size, &none)
      receiver.received.store(size == MemoryLayout<Int>.size ? answer : -1, ordering: .releasing)
    }
    while receiver.thread.load(ordering: .acquiring) == 0 { usleep(1_000) }
    for _ in 0..<20 {
      usleep(10_000)
      pthread_kill(pthread_t(receiver.thread.load(ordering: .acquiring)), SIGUSR2)
    }
    var answer = 7
    #expect(clinux_send(sockets[1], &answer, MemoryLayout<Int>.size, nil, 0) == MemoryLayout<Int>.size)
    group.join()
    #expect(receiver.received.load(ordering: .acquiring) == 7)
    for socket in sockets { close(socket) }
  }
}
