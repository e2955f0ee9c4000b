import ArgumentParser
import Sessions

/// The limits of rolling retention of `run`. They remove, so they are no settings: a file or a variable that is left over from
/// another time removes nothing.
struct RetentionOptions: ParsableArguments {
  @Option(
    help: .call("Remove segments that ended longer ago than this.", valueName: "age", example: "7d"),
    transform: Age.init)
  var retain: Age?

  @Option(
    help: ArgumentHelp("Remove the oldest segments until all videos have at most this many bytes.", valueName: "bytes"))
  var maxBytes: Int?

  var limits: RetentionLimits { RetentionLimits(ageMs: retain?.ms, maximumBytes: maxBytes) }

  func validate() throws { try requireBytes(maxBytes) }
}

/// Throws if a value of `--max-bytes` is no number of bytes.
func requireBytes(_ maxBytes: Int?) throws {
  if let maxBytes, maxBytes < 1 { throw ValidationError("--max-bytes is a number of bytes above 0") }
}
