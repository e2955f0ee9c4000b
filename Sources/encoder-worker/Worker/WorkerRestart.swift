import CLinux
import Glibc
import Logging
import SegmentEncoder

/// Executes the program again in the same process when a batch hangs in a library or on a disk: the kernel ends all
/// threads. The new worker takes over the batches as from a dead worker, and continues the counts.
struct WorkerRestart {
  /// The blocked signals, which the new program inherits.
  private let signals: sigset_t

  /// Notes the signals that are blocked now.
  init() {
    var signals = sigset_t()
    pthread_sigmask(SIG_SETMASK, nil, &signals)
    self.signals = signals
  }

  func execute(because job: JobWatch.Stuck, of worker: Worker) -> Never {
    StandardError.writeWithTimeout {
      worker.logger.error("worker.restarting", metadata: ["batch": "\(job.batch)", "error": "\(job)"])
    }
    Handover(worker.counters).leave()
    var words: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) }
    words.append(nil)
    clinux_restore_signals([signals])
    execv("/proc/self/exe", words)
    let reason = String(cString: strerror(errno))
    StandardError.writeWithTimeout { worker.logger.error("worker.failed", metadata: ["error": "execv: \(reason)"]) }
    _exit(ExitStatus.temporaryFailure.rawValue)
  }
}
