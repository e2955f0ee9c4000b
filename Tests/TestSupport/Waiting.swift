import Encoding
import FileSystem
import Foundation

/// Repeats a step until it returns a value.
///
/// - Parameters:
///   - awaited: what the step waits for, for the message of a hang.
///   - pauseMs: milliseconds between two attempts.
/// - Throws: what the step throws; ``Tool/Failure`` after ten minutes. Only a hang takes that long.
package func firstValue<Value>(of awaited: String, pauseMs: UInt32 = 20, _ step: () throws -> Value?) throws -> Value {
  let endMs = MonotonicClock.milliseconds() + 600_000
  while MonotonicClock.milliseconds() < endMs {
    if let value = try step() { return value }
    usleep(1_000 * pauseMs)
  }
  throw Tool.Failure("timeout after 600 s: waited until \(awaited)")
}

/// Repeats a check until it is true, with the time limit of ``firstValue(of:pauseMs:_:)``.
package func waitUntil(_ awaited: String, pauseMs: UInt32 = 20, _ condition: () throws -> Bool) throws {
  _ = try firstValue(of: awaited, pauseMs: pauseMs) { try condition() ? true : nil }
}
