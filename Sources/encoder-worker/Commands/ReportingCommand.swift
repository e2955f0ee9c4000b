import ArgumentParser
import FileSystem

/// A command whose failures are reported on standard error and become the exit status.
protocol ReportingCommand: DescribedCommand {
  /// Does the command's work.
  func execute() throws
}

extension ReportingCommand {
  func run() throws { try reportingFailures(execute) }
}

/// Shows the progress of `work`, and cancels it after SIGTERM or SIGINT. Start decoders first: this starts a thread.
///
/// - Parameter work: calls `advance` with the number of finished units and that of all units.
func withProgress<R>(in units: String, _ work: (_ advance: (Int, Int) throws -> Void) throws -> R) throws -> R {
  try withProgress(in: units, TerminationSignals(), work)
}

/// - Parameter signals: those that the caller has made.
func withProgress<R>(
  in units: String, _ signals: TerminationSignals, _ work: (_ advance: (Int, Int) throws -> Void) throws -> R
) throws -> R {
  var progress = Progress()
  defer { progress.finish() }
  return try work { done, total in
    progress.show(done, of: total, units)
    if signals.takePending() { throw Cancelled() }
  }
}

/// - Parameter example: a name, for the message.
/// - Throws: wrong usage if the value of an option is empty, or means standard output.
func requireName(_ option: String, _ path: String, such example: String) throws {
  if path.isEmpty { throw ValidationError("\(option) is empty") }
  guard path != "-" else {
    throw ValidationError("\(option) -: the result is not written to standard output; name it, such as \(example)")
  }
}

/// - Throws: wrong usage if an option's value is out of range.
func require<Value: BinaryInteger>(
  _ option: String, _ value: Value?, in range: ClosedRange<Value>, _ unit: String? = nil
) throws {
  guard let value, !range.contains(value) else { return }
  let unit = unit.map { " \($0)" } ?? ""
  throw ValidationError("\(option) is between \(range.lowerBound) and \(range.upperBound)\(unit)")
}
