import ArgumentParser
import Sessions

/// The limits of rolling retention of `run`. They remove, so they are no settings: a file or a variable that is left over from
/// another time removes nothing.
struct RetentionOptions: ParsableArguments {
  @Option(
    help: .call("Remove segments that were published longer ago than this.", valueName: "age", example: "7d"),
    transform: Age.init)
  var retain: Age?

  @OptionGroup var videos: VideoBytesOption

  var limits: RetentionLimits { RetentionLimits(ageMs: retain?.ms, maximumBytes: videos.maxBytes) }
}

/// The limit of the bytes that sessions take.
struct VideoBytesOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Remove the oldest segments until all sessions take at most this many bytes, as 500GB.",
      valueName: "bytes"),
    transform: ByteCount.parse)
  var maxBytes: Int?

  func validate() throws {
    if let maxBytes, maxBytes < 1 { throw ValidationError("--max-bytes is a number of bytes above 0") }
  }
}
