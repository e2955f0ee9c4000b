import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import Glibc
import SegmentEncoder
import WorkQueues

extension Quality: ExpressibleByArgument {}

extension Colour: ExpressibleByArgument {
  public init?(argument: String) {
    switch argument {
    case "black": self = .black
    case "white": self.init(red: 255, green: 255, blue: 255)
    default: self.init(argument)
    }
  }
}

/// The number of threads that work in parallel.
enum Jobs {
  static let range = 1...256

  /// Returns `jobs`, or the number of cores.
  static func threads(_ jobs: Int?) -> Int { jobs ?? ThreadGroup.processors }
}

/// The lease of claims, in seconds. Workers send a heartbeat every three.
enum Lease {
  static let defaultValue = HeartbeatMonitor.defaultLease

  static func validate(_ lease: Int) throws { try require("--lease", lease, in: 10...86_400, "seconds") }
}

/// Options that decide the segments' content; the same for every command that encodes.
struct EncodingOptions: ParsableArguments {
  @Option(name: .shortAndLong, help: .setting("small, balanced or sharp: fewer bytes, or more legible text."))
  var quality = Quality.balanced

  @Option(
    help: .setting("Maximum hold of a picture in milliseconds; the rest is listed as a gap.", valueName: "ms"))
  var maxHold = DefaultLengths.maxHoldMs

  @Option(
    help: .setting("Colour behind transparent pixels: white, black or six hexadecimal digits.", valueName: "colour"))
  var background = Colour.black

  @Option(
    help: .setting(
      "Bits that cameras have stored in samples of 16 bits, 8 to 16.", default: "as the files say, else 16",
      valueName: "n"))
  var bits: Int?

  @Option(
    help: .setting(
      "Refuse a few frames that are this many milliseconds from all others, after a jump of the clock.", valueName: "ms"
    )
  )
  var maxJump = Limits().jumpMs

  @Flag(help: .setting("Leave out the labels of batches and of recorders: steps, captions, errors."))
  var noLabels = false

  @OptionGroup var sandbox: SandboxOptions

  @OptionGroup var changed: LimitOptions

  @Flag(help: .setting("At the end, print the time of each stage on standard error."))
  var profile = false

  func validate() throws {
    try require("--max-hold", maxHold, in: 1...BatchEncoder.Options.longestHoldMs, "milliseconds")
    try require("--bits", bits, in: 8...16)
    guard maxJump > 0 else { throw ValidationError("--max-jump is more than 0 milliseconds") }
  }

  /// The limits of the batches that a folder is split into.
  func partLimits(_ options: BatchEncoder.Options) -> PartLimits {
    PartLimits(changed.limits, maxHoldMs: maxHold, segmentMs: options.longestSegmentMs)
  }

  /// Returns the encoder's options, with decoders. Call it before the process has threads.
  ///
  /// - Parameters:
  ///   - segment: the length of a full segment in seconds; nil for the default.
  ///   - readsVideos: whether they read published segments, too.
  func encoder(
    _ input: InputOptions = InputOptions(), segment: Int64?, readsVideos: Bool = false
  ) throws -> BatchEncoder.Options {
    var options = BatchEncoder.Options()
    options.input = input
    options.input.takesLabels = !noLabels
    options.quality = quality
    options.maxHoldMs = maxHold
    options.segmentMs = segment.map { 1_000 * $0 } ?? Timeline.defaultSegmentMs
    options.limits = changed.limits
    options.limits.jumpMs = maxJump
    options.limits.decodeSeconds = sandbox.maxDecode
    options.background = background
    options.sampleBits = bits
    options.profile = profile ? Profile() : nil
    options.decoders = try sandbox.decoders(options.limits, background: background, readsVideos: readsVideos)
    return options
  }
}

/// The length of segments, and the work in parallel, of a command that encodes batches.
struct SegmentOptions: ParsableArguments {
  static let segmentHelp =
    "Length of a full segment in seconds, 1 to 600. More than 5 saves bytes where pictures stay for long."
  static let jobsHelp = "Number of threads that encode in parallel."

  @Option(help: .setting(Self.segmentHelp, default: "5", valueName: "seconds"))
  var segment: Int64?

  @Option(name: .shortAndLong, help: .setting(Self.jobsHelp, default: "the number of cores", valueName: "n"))
  var jobs: Int?

  func validate() throws { try Self.validate(segment, jobs) }

  /// - Throws: wrong usage.
  static func validate(_ segment: Int64?, _ jobs: Int?) throws {
    try require("--segment", segment, in: 1...600, "seconds")
    try require("--jobs", jobs, in: Jobs.range)
  }

  var threads: Int { Jobs.threads(jobs) }
}

/// Options for events; the same for every command that publishes batches.
struct EventOptions: ParsableArguments {
  @Flag(help: .setting("Keep Sentry's rrweb event beside each manifest: segment-<start>.sentry.json."))
  var sentry = false
}
