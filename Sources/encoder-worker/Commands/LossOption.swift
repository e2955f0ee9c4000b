import ArgumentParser
import FrameBatches

/// The option that publishes what is left of a batch.
struct LossOption: ParsableArguments {
  static let help: ArgumentHelp = "Take a batch as it is, though most of its pictures, or a session, cannot be shown."

  @Flag(help: Self.help)
  var accept = false

  /// Returns an error with the option in its advice, if the option helps.
  static func named(in error: any Error) -> any Error {
    guard let bad = error as? BadBatch, !bad.marks.isEmpty else { return error }
    return BadBatch(bad.operation, bad.file, bad.cause, advice: "\(bad.advice); or take it as it is with --accept")
  }
}
