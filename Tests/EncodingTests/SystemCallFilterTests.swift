import CLinux
import Glibc
import Testing

/// The filter that confines decoders.
@Suite struct SystemCallFilterTests {
  /// Runs `body` in a new process, and returns its wait status.
  private func status(of body: () -> Int32) -> Int32 {
    let process = clinux_fork()
    // The child has one thread, and calls nothing that may wait for another one.
    if process == 0 { _exit(body()) }
    var status: Int32 = 0
    waitpid(process, &status, 0)
    return status
  }

  @Test func forbiddenCallKillsTheProcess() {
    let status = status {
      guard clinux_limit_files() == 0, clinux_only_compute() == 0 else { return 1 }
      return open("/", O_RDONLY) < 0 ? 2 : 3
    }
    #expect(status & 0x7F == SIGSYS)
  }

  @Test func processKnowsWhetherItIsFiltered() {
    #expect(clinux_is_filtered() == 0)
    let status = status {
      clinux_only_compute() == 0 && clinux_is_filtered() == 1 ? 0 : 1
    }
    #expect(status == 0)
  }
}
