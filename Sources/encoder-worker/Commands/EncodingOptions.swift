import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import Glibc
import SegmentEncoder
import WorkQueues

extension Quality: ExpressibleByArgument {}

extension Colour: ExpressibleByArgument {
  public init?(argument: String) { self.init(argument) }
}

/// How much is done at once.
enum Jobs {
  static let range = 1...256
  static let rule = "--jobs is between 1 and 256"

  /// As many as were asked for, or as there are cores.
  static func threads(_ jobs: Int?) -> Int { jobs ?? max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }
}

/// How long workers of other hosts may be still, in seconds. They count every three.
enum Lease {
  static let usual = Witness.usualLease
  static let range = 10...86_400
  static let rule = "--lease is between 10 and 86400 seconds"
}

/// What decides the segments' content; the same for every command that encodes.
struct EncodingOptions: ParsableArguments {
  @Option(name: .shortAndLong, help: "small, balanced or sharp: bytes against legibility.")
  var quality = Quality.balanced

  @Option(
    help: ArgumentHelp("A picture stays on screen at most this long; the rest is listed as a gap.", valueName: "ms"))
  var maxHold: Int64 = 5_000

  @Option(help: ArgumentHelp("What is behind transparent pixels: six hexadecimal digits.", valueName: "colour"))
  var background = Colour.black

  @Option(
    help: ArgumentHelp("Frames further from all others are refused: the clock has jumped.", valueName: "ms"))
  var maxJump: Int64 = 86_400_000

  @OptionGroup
  var sandbox: SandboxOptions

  @Option(
    help: ArgumentHelp(
      "Another limit for a batch: \(LimitSetting.names). May be given several times.", valueName: "name=value"))
  var limit: [LimitSetting] = []

  @Option(name: .shortAndLong, help: ArgumentHelp("Batches at once. (default: the number of cores)", valueName: "n"))
  var jobs: Int?

  @Flag(help: "At the end, how long each stage took, on standard error.")
  var profile = false

  func validate() throws {
    guard (1...86_400_000).contains(maxHold) else {
      throw ValidationError("--max-hold is between 1 and 86400000 milliseconds")
    }
    guard maxJump > 0 else { throw ValidationError("--max-jump is more than 0 milliseconds") }
    guard Jobs.range.contains(jobs ?? 1) else { throw ValidationError(Jobs.rule) }
  }

  /// How many threads encode.
  var threads: Int { Jobs.threads(jobs) }

  /// To be asked for before the process has threads.
  func encoder() throws -> BatchEncoder.Options {
    var options = BatchEncoder.Options()
    options.quality = quality
    options.maxHoldMs = maxHold
    for setting in limit { setting.apply(to: &options.limits) }
    options.limits.jumpMs = maxJump
    options.limits.decodeSeconds = sandbox.maxDecode
    options.background = background
    options.profile = profile ? Profile() : nil
    options.decoders = try sandbox.decoders(options.limits, background: background)
    return options
  }
}

/// What is told of segments to whom; the same for every command that publishes batches.
struct EventOptions: ParsableArguments {
  @Flag(help: "Keep Sentry's rrweb video event beside each manifest, in segment-<start>.sentry.json.")
  var sentry = false
}

/// Whose a batch is that does not say so; the same for every command that reads batches.
struct NamingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The session of batches that do not name theirs. (default: the name up to @)", valueName: "id"))
  var session: String?

  func validate() throws {
    if let session, SessionID(session) == nil { throw ValidationError("--session: \(SessionID.rule)") }
  }
}
