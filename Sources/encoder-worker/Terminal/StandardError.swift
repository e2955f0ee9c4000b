import FileSystem
import Glibc
import Logging
import Synchronization

/// Standard error, which lines and a progress bar share. The bar stays the last line; each other line goes above it, in
/// one write.
enum StandardError {
  private struct State {
    var format = LogFormat.text
    /// The bar in the last line; nil if there is none.
    var bar: String?
  }

  private static let state = Mutex(State())
  private static let clearLine = "\r\u{1B}[K"

  /// Sets the format of all further messages.
  static func use(_ format: LogFormat) { state.withLock { $0.format = format } }

  static func say(_ text: String, _ level: Logger.Level) {
    state.withLock { state in
      write(state.format == .json ? LogLine.json(level, text, [:]) : text, &state)
    }
  }

  /// Runs `body` in another thread and waits one second for it at most. Use it before the process ends: a write blocks
  /// while no process reads standard error.
  static func writeWithTimeout(_ body: @escaping @Sendable () -> Void) {
    let completion = Completion()
    do {
      try ThreadGroup().start {
        body()
        completion.isDone.store(true, ordering: .releasing)
      }
    } catch {
      return
    }
    for _ in 0..<100 where !completion.isDone.load(ordering: .acquiring) { usleep(10_000) }
  }

  private final class Completion: Sendable {
    let isDone = Atomic(false)
  }

  /// - Parameter line: a line without its end and without control characters.
  static func write(line: String) { state.withLock { write(line, &$0) } }

  /// Replaces the bar.
  static func show(bar: String) {
    state.withLock { state in
      state.bar = bar
      _ = put(clearLine + bar, on: STDERR_FILENO)
    }
  }

  static func removeBar() {
    state.withLock { state in
      if state.bar != nil { _ = put(clearLine, on: STDERR_FILENO) }
      state.bar = nil
    }
  }

  /// Writes to standard output, which may be the same terminal.
  static func besideBar<R>(_ body: () -> R) -> R {
    state.withLock { state in
      guard let bar = state.bar, isatty(STDOUT_FILENO) == 1 else { return body() }
      _ = put(clearLine, on: STDERR_FILENO)
      defer { _ = put(bar, on: STDERR_FILENO) }
      return body()
    }
  }

  private static func write(_ line: String, _ state: inout State) {
    _ = put(state.bar.map { clearLine + line + "\n" + $0 } ?? line + "\n", on: STDERR_FILENO)
  }
}
