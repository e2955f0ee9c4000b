import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import Glibc
import Logging
import SegmentEncoder
import Sessions
import WorkQueues

/// How the program ends, after sysexits.h.
enum ExitStatus {
  static let badBatch = ExitCode(65)
  static let inputOutputError = ExitCode(74)
  static let temporaryFailure = ExitCode(75)

  /// For a failure of the environment.
  static func of(_ error: any Error) -> ExitCode {
    Disposition.isInputOutputError(error) ? inputOutputError : temporaryFailure
  }
}

/// Does a command's work; what fails is said, and becomes the exit status.
func reportingFailures(_ work: () throws -> Void) throws {
  do {
    try work()
  } catch let status as ExitCode {
    throw status
  } catch let bad as BadBatch {
    say("encoder-worker: \(bad); \(bad.advice)", .error)
    throw ExitStatus.badBatch
  } catch let bad as BadTarget {
    say("encoder-worker: \(bad)", .error)
    throw ExitCode.validationFailure
  } catch let bad as BadList {
    say("encoder-worker: \(bad)", .error)
    throw ExitCode.validationFailure
  } catch let missing as NoSuchBatch {
    say("encoder-worker: \(missing)", .error)
    throw ExitCode.validationFailure
  } catch let wrong as NothingToServe {
    say("encoder-worker: \(wrong)", .error)
    throw ExitCode.validationFailure
  } catch let missing as NoSuchSpool {
    say("encoder-worker: \(missing)", .error)
    throw ExitCode.validationFailure
  } catch is Cancelled {
    say("encoder-worker: stopped; nothing is lost, run it again")
    throw ExitStatus.temporaryFailure
  } catch let failure as DiskError where failure.operation == "mkdir" {
    say("encoder-worker: cannot make a directory: \(failure); \(adviceOnMaking(failure.path))", .error)
    throw ExitStatus.of(failure)
  } catch {
    say("encoder-worker: \(error)", .error)
    throw error is BadSession || error is DamagedOutput ? ExitStatus.badBatch : ExitStatus.of(error)
  }
}

/// The remedy where a directory cannot be made.
private func adviceOnMaking(_ path: String) -> String {
  var place = path
  while !["/", "."].contains(place), !DurableFile.exists(place) { place = DurableFile.parentDirectory(of: place) }
  let own = "name a directory of your own, as ~/\(lastComponent(of: path))"
  guard access(place, W_OK | X_OK) != 0 else { return own }
  return "you may not write to \(place): run 'sudo install -d -o $USER \(path)', or \(own)"
}

/// Says something to a person, on standard error: one line, whatever the names in it are.
func say(_ text: String, _ level: Logger.Level = .notice) { StandardError.say(text.oneLine, level) }

/// Says something that is of several lines, and ours.
func say(lines text: String) { StandardError.say(text, .notice) }

/// Hands a result to a program, on standard output: in one piece. A result that cannot be written is a failure. On a
/// terminal, names in it do nothing to that.
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
