import Glibc
import WorkQueues

/// Facts that the program leaves for itself when it executes itself again in the same process. Only the environment and the
/// arguments survive execve(2). The variable is private to the program: it exists from ``leave()`` to the next ``take()``.
struct Handover {
  /// Not with the prefix of settings, which the parser checks.
  private static let variable = "_ENCODER_WORKER_HANDOVER"

  /// The counts of the worker before the restart.
  let counters: WorkerCounters

  init(_ counters: WorkerCounters) { self.counters = counters }

  /// Reads what the program before left, and removes it from the environment. Call it once, before the process has children.
  ///
  /// - Returns: nil in a process that was started as usual.
  static func take() -> Handover? {
    guard let text = getenv(variable).map({ String(cString: $0) }) else { return nil }
    unsetenv(variable)
    return WorkerCounters(json: Array(text.utf8)).map(Handover.init)
  }

  func leave() { setenv(Self.variable, counters.json.line, 1) }
}
