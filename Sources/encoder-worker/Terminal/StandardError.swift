import FileSystem
import Glibc
import Logging
import SegmentEncoder
import Synchronization

/// Standard error, which lines and a bar share: the bar stays the last thing there, and each line goes above it in one
/// write.
enum StandardError {
  private struct State {
    var format = LogFormat.text
    /// The bar in the last line; nil if there is none.
    var bar: String?
  }

  private static let state = Mutex(State())
  private static let wiped = "\r\u{1B}[K"

  /// From here on, everything is said like this.
  static func speak(_ format: LogFormat) { state.withLock { $0.format = format } }

  static func say(_ text: String, _ level: Logger.Level) {
    state.withLock { state in
      write(state.format == .json ? LogLine.json(level, text, [:]) : text, &state)
    }
  }

  /// Runs `body` in another thread and waits one second for it at most. Use it before the process ends: a write blocks while no
  /// process reads standard error.
  static func writeWithTimeout(_ body: @escaping @Sendable () -> Void) {
    let said = Said()
    do {
      try ThreadGroup().start {
        body()
        said.isDone.store(true, ordering: .releasing)
      }
    } catch {
      return
    }
    for _ in 0..<100 where !said.isDone.load(ordering: .acquiring) { usleep(10_000) }
  }

  private final class Said: Sendable {
    let isDone = Atomic(false)
  }

  /// - Parameter line: without its end; nothing in it moves a cursor.
  static func write(line: String) { state.withLock { write(line, &$0) } }

  /// Puts a bar in the place of the last one.
  static func show(bar: String) {
    state.withLock { state in
      state.bar = bar
      _ = put(wiped + bar, on: STDERR_FILENO)
    }
  }

  static func removeBar() {
    state.withLock { state in
      if state.bar != nil { _ = put(wiped, on: STDERR_FILENO) }
      state.bar = nil
    }
  }

  /// Writes to standard output, which may be the same terminal.
  static func besideBar<R>(_ body: () -> R) -> R {
    state.withLock { state in
      guard let bar = state.bar, isatty(STDOUT_FILENO) == 1 else { return body() }
      _ = put(wiped, on: STDERR_FILENO)
      defer { _ = put(bar, on: STDERR_FILENO) }
      return body()
    }
  }

  private static func write(_ line: String, _ state: inout State) {
    _ = put(state.bar.map { wiped + line + "\n" + $0 } ?? line + "\n", on: STDERR_FILENO)
  }
}
