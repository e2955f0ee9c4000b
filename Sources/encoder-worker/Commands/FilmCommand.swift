import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions

struct FilmCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "film",
    abstract: "Make one film of a folder of pictures, and leave nothing else.",
    discussion: """
      INPUT is all that encode takes: directories, archives, recordings, images. All inputs are one session. For numbered pictures, --fps is enough: the film begins at 0. Killed at any moment, the command leaves no file.

      The ending of FILE tells its form: .mp4, an animated picture that loops (.gif, .webp), or the picture at --from (.png, .jpg).
      """)

  @Argument(
    help: ArgumentHelp(
      "Pictures, directories or archives; - reads an archive from standard input.", valueName: "input"),
    completion: .file())
  var inputs: [String]

  @Option(
    help: .call(
      "The film to write or replace: .mp4, .gif, .webp, .png or .jpg.", valueName: "file", example: "film.mp4"),
    completion: .file())
  var to: String

  @Option(
    help: .setting(
      "Gaps of the film: hold keeps the picture before the gap, cut leaves the gap out.", default: "hold"))
  var gaps: GapRule?

  @Option(
    help: ArgumentHelp(
      "Capture of the lowest-numbered picture, in unix ms or ISO 8601. (default: unknown)", valueName: "time"))
  var start: String?

  @Option(help: ArgumentHelp("Frames per second of numbered pictures.", valueName: "rate"))
  var fps: String?

  @OptionGroup var part: ClipOptions
  @OptionGroup var idle: IdleOptions
  @OptionGroup var map: MapOptions
  @OptionGroup var size: FilmSizeOptions
  @OptionGroup var loss: LossOption
  @OptionGroup var capture: CaptureArguments
  @OptionGroup var results: ResultOptions
  @OptionGroup var settings: SettingsOption
  @OptionGroup(title: "Encoding") var encoding: EncodingOptions

  /// The session of inputs that name none.
  private static let session = "film"
  /// The first instant that a capture can have, for numbered pictures whose start nobody states.
  private static let unknownStart = Limits().instants.lowerBound
  /// A film is no batch of a queue: only memory limits it.
  private static let segments = 1_000_000

  func validate() throws {
    if inputs.isEmpty { throw ValidationError("no input; name a folder of pictures") }
    if to.isEmpty { throw ValidationError("--to is empty") }
    try FilmSizeOptions.requireFilm(to, "film")
    try size.validate(for: form)
    try part.requireNoInstant(to)
    try idle.validate(for: form, at: part.clip(idle: nil).speed)
    try map.validate(for: form, named: to)
    if assumedStart != nil { try part.requireNoClock() }
    _ = try input()
  }

  private var form: FilmForm { FilmForm(ofName: to, maxSide: size.maxSide) }

  /// The start of numbered pictures if nobody states it.
  private var assumedStart: Int64? { start == nil && fps != nil ? Self.unknownStart : nil }

  private func input() throws -> InputOptions {
    // A pattern tells the sessions of inputs, and a film shows one.
    let session = try capture.names.pattern() == nil ? Self.session : nil
    return try capture.options(session: session, start: start ?? assumedStart.map { "\($0)" }, fps: fps)
  }

  func execute() throws {
    let target = try Stitching.file(to)
    try form.requireEncoder(for: target)
    try map.check()
    var options = try encoding.encoder(input())
    if form == .mp4 { options.maxSide = size.maxSide }
    options.limits.frames = max(options.limits.frames, Limits.ofFolder.frames)
    options.limits.entries = max(options.limits.entries, Limits.ofFolder.entries)
    options.limits.segments = max(options.limits.segments, Self.segments)
    options.limits.splitsFolders = true
    // Reads the segments that this process has encoded.
    try FormatLibrary.load()
    let film = try FilmSegments(
      in: DurableFile.parentDirectory(of: target), assumedStart: assumedStart, decoders: nil)
    let signals = try TerminationSignals()
    try encode(BatchSelection.batches(inputs), into: film, options, signals)
    let result = try withProgress(in: form.unit, signals) { advance in
      try film.film(
        showing: part.clip(idle: idle.rule()), as: form, to: to, gaps: gaps ?? .hold, progress: advance)
    }
    try map.write(result)
    for warning in result.warnings { say("\(warning.file): \(warning.what)") }
    results.print(json: result.json, text: result.text(of: form))
  }

  private func encode(
    _ batches: [BatchSelection.Batch], into film: FilmSegments, _ options: BatchEncoder.Options,
    _ signals: TerminationSignals
  ) throws {
    let keyFrames = KeyFrameCache()
    try BatchRun(batches, encoding.partLimits, accepts: loss.accept).workOff(
      threads: encoding.jobs ?? 1, signals: signals, unit: "inputs",
      makeEncoder: { BatchEncoder(options, publishingTo: film, keyFrames: keyFrames) },
      check: { try Self.requireOneSession($0, $1) }, conclude: { conclude($0, $1) })
    if let profile = options.profile { say(lines: table(profile.rows)) }
  }

  private static func requireOneSession(_ path: String, _ read: BatchEncoder.ReadBatch) throws {
    guard read.allSessions.count == 1 else {
      throw BadBatch(
        "film", path,
        "it has \(read.allSessions.count) sessions: \(read.allSessions.map(\.description).joined(separator: ", "))",
        advice: "make a film of each: run encode, then stitch")
    }
  }

  /// Reports what has become of an input.
  private func conclude(_ path: String, _ outcome: BatchRun.Outcome) -> ExitCode? {
    do {
      for receipt in try outcome.get() {
        for refused in receipt.refused { say("\(path): refused \(refused.source): \(refused.reason)") }
        for warning in receipt.warnings { say("\(path): \(warning)") }
      }
      return nil
    } catch {
      switch Disposition(of: LossOption.named(in: error), batch: path) {
      case .quarantine(let reason):
        say("\(path): \(reason); \(reason.advice)")
        return ExitStatus.badBatch
      case .handBack: return ExitStatus.temporaryFailure
      case .retry, .unknown:
        say("encoder-worker: \(path): \(error); nothing is lost, fix it and run again", .error)
        return ExitStatus.of(error)
      }
    }
  }
}
