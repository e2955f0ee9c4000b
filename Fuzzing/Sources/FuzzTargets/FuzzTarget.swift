import Glibc

@testable import Encoding
@testable import FrameBatches
@testable import JSON
@testable import WorkQueues

/// The fuzz targets: the reader of every format, and the parsers of untrusted bytes that these readers use.
enum FuzzTarget: String, CaseIterable {
  case native
  case plain
  case sentryCocoa = "sentry-cocoa"
  case sentryAndroid = "sentry-android"
  case recorderTar = "recorder-tar"
  case openReplayFrames = "openreplay-frames"
  case rejourneyFrames = "rejourney-frames"
  case rejourneySpill = "rejourney-spill"
  case names
  case playwright
  case cua
  case browserUse = "browser-use"
  case labels
  case rrweb
  case screencast
  case archive
  case zip
  case picture
  case png
  case json
  case wire
  case words
  case redis
  case pack

  /// The target that the command line names.
  static let current = CommandLine.arguments.dropFirst().first.flatMap { FuzzTarget(rawValue: $0) }

  /// Low limits, so that runs are short and inputs reach the limits.
  static let limits: Limits = {
    var limits = Limits()
    limits.fileBytes = 64 << 10
    limits.side = 512
    limits.pixels = 64_000
    limits.frames = 32
    limits.layers = 6
    limits.entries = 48
    limits.unpackedBytes = 256 << 10
    limits.jsonBytes = 16 << 10
    limits.metadataBytes = 512
    limits.refusals = 8
    limits.nameBytes = 64
    return limits
  }()

  func run(_ bytes: [UInt8]) {
    switch self {
    case .native: FormatFuzzing.read(bytes, as: NativeFormat.self)
    case .plain: FormatFuzzing.read(bytes, as: PlainFormat.self)
    case .sentryCocoa: FormatFuzzing.read(bytes, as: SentryCocoaFormat.self)
    case .sentryAndroid: FormatFuzzing.read(bytes, as: SentryAndroidFormat.self)
    case .recorderTar: FormatFuzzing.read(bytes, as: RecorderTarFormat.self)
    case .openReplayFrames: FormatFuzzing.readStream(bytes, as: OpenReplayFramesFormat.self)
    case .rejourneyFrames: FormatFuzzing.readStream(bytes, as: RejourneyFramesFormat.self)
    case .rejourneySpill: FormatFuzzing.read(bytes, as: RejourneySpillFormat.self)
    case .names: FormatFuzzing.readNames(bytes)
    case .playwright: FormatFuzzing.read(bytes, as: PlaywrightFormat.self)
    case .cua: FormatFuzzing.read(bytes, as: CuaFormat.self)
    case .browserUse: FormatFuzzing.read(bytes, as: BrowserUseFormat.self)
    case .labels: LabelFuzzing.read(bytes)
    case .rrweb: FormatFuzzing.readStream(bytes, as: RRWebFormat.self)
    case .screencast: FormatFuzzing.readStream(bytes, as: ScreencastFormat.self)
    case .archive: ArchiveFuzzing.read(bytes)
    case .zip: ArchiveFuzzing.read(ArchiveFuzzing.withValidPlaces(bytes))
    case .picture: PictureFuzzing.decode(bytes)
    case .png: PNGFuzzing.compare(bytes)
    case .json: JSONFuzzing.parse(bytes)
    case .wire: WireFuzzing.read(bytes)
    case .words: WordFuzzing.read(bytes)
    case .redis: RedisFuzzing.read(bytes)
    case .pack: PackFuzzing.read(bytes)
    }
  }
}

/// Ends the process with a message if an invariant does not hold. In optimized code, `precondition` would not print the
/// message.
func require(_ isKept: Bool, _ promise: @autoclosure () -> String) {
  if !isKept { fatalError("broken promise: \(promise())") }
}
