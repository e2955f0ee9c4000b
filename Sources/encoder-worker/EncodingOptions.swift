import ArgumentParser
import Glibc
import SegmentEncoder

extension Quality: ExpressibleByArgument {}

/// What decides the segments' content; the same for every command that encodes.
struct EncodingOptions: ParsableArguments {
  @Option(name: .shortAndLong, help: "small, balanced or sharp: bytes against legibility.")
  var quality = Quality.balanced

  @Option(
    help: ArgumentHelp("A picture stays on screen at most this long; the rest is listed as a gap.", valueName: "ms"))
  var maxHold: Int64 = 5_000

  @Option(name: .shortAndLong, help: ArgumentHelp("Batches at once. (default: the number of cores)", valueName: "n"))
  var jobs: Int?

  func validate() throws {
    guard (1...86_400_000).contains(maxHold) else {
      throw ValidationError("--max-hold is between 1 and 86400000 milliseconds")
    }
    guard (1...256).contains(jobs ?? 1) else { throw ValidationError("--jobs is between 1 and 256") }
  }

  /// How many threads encode.
  var threads: Int { jobs ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  var encoder: BatchEncoder.Options {
    var options = BatchEncoder.Options()
    options.quality = quality
    options.maxHoldMs = maxHold
    return options
  }
}
