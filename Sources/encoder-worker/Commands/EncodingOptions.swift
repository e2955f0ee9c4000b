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
  static let defaultValue = HeartbeatMonitor.defaultLease
  static let range = 10...86_400
  static let rule = "--lease is between 10 and 86400 seconds"
}

/// Options that decide the segments' content; the same for every command that encodes.
struct EncodingOptions: ParsableArguments {
  @Option(name: .shortAndLong, help: "small, balanced or sharp: fewer bytes, or more legible text.")
  var quality = Quality.balanced

  @Option(
    help: ArgumentHelp("Maximum hold of a picture in milliseconds; the rest is listed as a gap.", valueName: "ms"))
  var maxHold: Int64 = 5_000

  @Option(help: ArgumentHelp("Colour behind transparent pixels: six hexadecimal digits.", valueName: "colour"))
  var background = Colour.black

  @Option(
    help: ArgumentHelp(
      "Refuse frames that are this many milliseconds away from all others, after a jump of the clock.", valueName: "ms")
  )
  var maxJump: Int64 = 86_400_000

  @OptionGroup
  var sandbox: SandboxOptions

  @Option(
    help: ArgumentHelp(
      "Change a limit: \(LimitSetting.names). May be given several times.", valueName: "name=value"))
  var limit: [LimitSetting] = []

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Number of batches in parallel. (default: the number of cores)", valueName: "n"))
  var jobs: Int?

  @Flag(help: "At the end, print the time of each stage on standard error.")
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

/// Options for events; the same for every command that publishes batches.
struct EventOptions: ParsableArguments {
  @Flag(help: "Keep Sentry's rrweb event beside each manifest: segment-<start>.sentry.json.")
  var sentry = false
}

/// The session of batches that name none; the same for every command that reads batches.
struct NamingOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Session of batches that name none. (default: the batch's name up to @)", valueName: "id"))
  var session: String?

  func validate() throws {
    if let session, SessionID(session) == nil { throw ValidationError("--session: \(SessionID.rule)") }
  }
}
