import ArgumentParser
import Encoding
import FileSystem
import Films
import FrameBatches
import Glibc
import Logging
import Notifying
import Remote
import SegmentEncoder
import Sessions
import Showing
import WorkQueues

/// The exit statuses, after sysexits.h.
enum ExitStatus {
  static let badBatch = ExitCode(65)
  static let inputOutputError = ExitCode(74)
  static let temporaryFailure = ExitCode(75)

  static func of(_ error: any Error) -> ExitCode {
    if error is ValidationError { return .validationFailure }
    let status = ExitCode(error.consequence.exitStatus)
    return status == temporaryFailure ? afterRetry(of: error) : status
  }

  /// For work that stays owed: another run does it.
  static func afterRetry(of error: any Error) -> ExitCode {
    Disposition.isInputOutputError(error) ? inputOutputError : temporaryFailure
  }
}

/// Runs a command's work. Reports its error on standard error, and throws the exit status for it.
func reportingFailures(_ work: () throws -> Void) throws {
  do {
    try work()
  } catch let status as ExitCode {
    throw status
  } catch {
    switch error {
    case let bad as BadBatch: say("encoder-worker: \(bad); \(bad.advice)", .error)
    case is Cancelled: say("encoder-worker: stopped; nothing is lost, run it again")
    case let failure as DiskError where failure.operation == "mkdir":
      say("encoder-worker: cannot make a directory: \(failure); \(adviceOnMaking(failure.path))", .error)
    default: say("encoder-worker: \(error)", .error)
    }
    throw ExitStatus.of(error)
  }
}

/// Returns the remedy for a directory that cannot be made.
private func adviceOnMaking(_ path: String) -> String {
  var existing = path
  while !["/", "."].contains(existing), !DurableFile.exists(existing) {
    existing = DurableFile.parentDirectory(of: existing)
  }
  let own = "name a directory of your own, as ~/\(lastComponent(of: path).shellWord)"
  guard access(existing, W_OK | X_OK) != 0 else { return own }
  return "you may not write to \(existing): run: sudo install -d -o $USER \(path.shellWord); or \(own)"
}

/// Writes a message for people to standard error, in one line: names in it may hold line ends and control characters.
func say(_ text: String, _ level: Logger.Level = .notice) { StandardError.say(text.oneLine, level) }

/// Writes a message of several lines, which holds no foreign names.
func say(lines text: String) { StandardError.say(text, .notice) }

/// Writes a result to standard output, in one piece. Ends the program if that fails. On a terminal, control characters
/// are escaped.
func answer(_ text: String) {
  let shown = isatty(STDOUT_FILENO) == 1 ? text.printable : text
  guard StandardError.besideBar({ put(shown + "\n", on: STDOUT_FILENO) }) else {
    say("encoder-worker: write standard output: \(String(cString: strerror(errno)))", .error)
    _exit(ExitStatus.inputOutputError.rawValue)
  }
}

/// - Returns: whether all of it was written.
func put(_ text: String, on descriptor: Int32) -> Bool {
  var rest = Array(text.utf8)[...]
  while !rest.isEmpty {
    let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    if count < 0 && errno != EINTR { return false }
    rest = rest.dropFirst(max(0, count))
  }
  return true
}
