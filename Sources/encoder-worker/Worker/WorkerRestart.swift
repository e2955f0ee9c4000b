import CLinux
import Glibc
import Logging
import SegmentEncoder
import WorkQueues

/// Executes the program again in the same process when a batch hangs in a library or on a disk: the kernel ends all
/// threads. The new worker takes over the batches as from a dead worker, and continues the counts.
struct WorkerRestart {
  /// Not the prefix of settings, which the parser checks.
  private static let variable = "_TALLY_OF_ENCODER_WORKER"

  /// The counts of the worker before the restart; nil if there was none.
  let counters: WorkerCounters?
  /// The blocked signals at the start, for the new worker.
  private let signals: sigset_t

  init() {
    counters = getenv(Self.variable).flatMap { WorkerCounters(json: Array(String(cString: $0).utf8)) }
    unsetenv(Self.variable)
    var signals = sigset_t()
    pthread_sigmask(SIG_SETMASK, nil, &signals)
    self.signals = signals
  }

  func callAsFunction(because job: JobWatch.Stuck, of worker: Worker) -> Never {
    StandardError.writeWithTimeout {
      worker.logger.error("worker.restarting", metadata: ["batch": "\(job.batch)", "error": "\(job)"])
    }
    setenv(Self.variable, worker.counters.json.line, 1)
    var words: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) }
    words.append(nil)
    clinux_restore_signals([signals])
    execv("/proc/self/exe", words)
    let reason = String(cString: strerror(errno))
    StandardError.writeWithTimeout { worker.logger.error("worker.failed", metadata: ["error": "execv: \(reason)"]) }
    _exit(ExitStatus.temporaryFailure.rawValue)
  }
}
