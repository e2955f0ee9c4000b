import ArgumentParser
import Encoding
import FileSystem
import Films
import FrameBatches
import SegmentEncoder
import Sessions
import Synchronization

struct FilmCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "film",
    abstract: "Make one film of a folder of pictures.",
    discussion: """
      INPUT is all that encode takes: directories, archives, recordings, images; or one MP4 or MOV. All inputs are one session. For numbered pictures, --fps is enough: the film begins at 0. Killed at any moment, the command leaves no part of a film.

      The ending of FILE tells its form: .mp4, an animated picture that loops (.gif, .webp), or the picture at --from (.png, .jpg).
      """)

  static let page = HelpPage(
    example: "film shots/ --to film.mp4", required: [["to"]],
    common: ["fps", "speed", "from", "to-time", "idle", "gaps", "time-zone", "quality", "max-side", "json"])

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
      InputArguments.startHelp + " (default: unknown)", valueName: "time"))
  var start: String?

  @Option(help: ArgumentHelp(InputArguments.rateHelp, valueName: "rate"))
  var fps: String?

  @Option(
    help: ArgumentHelp(
      "Size of all pictures of an MP4, as 1280x720: each is shown whole, with black around it. (default: their own)",
      valueName: "size"))
  var canvas: String?

  @OptionGroup var part: ClipOptions
  @OptionGroup var idle: IdleOptions
  @OptionGroup var map: MapOptions
  @OptionGroup var size: FilmSizeOptions
  @OptionGroup var labels: LabelOptions
  @OptionGroup var loss: LossOption
  @OptionGroup var capture: CaptureArguments
  @OptionGroup var results: ResultOptions
  @OptionGroup var settings: SettingsOption
  @OptionGroup var encoding: EncodingOptions

  @Option(help: .setting(SegmentOptions.segmentHelp, default: "by the pictures", valueName: "seconds"))
  var segment: Int64?

  @Option(
    name: .shortAndLong,
    help: .setting(SegmentOptions.jobsHelp, default: "1, to save memory", valueName: "n"))
  var jobs: Int?

  /// The session of inputs that name none.
  static let session = "film"
  /// The first instant that a capture can have, for numbered pictures whose start nobody states.
  static let unknownStart = Limits().instants.lowerBound
  /// A film is no batch of a queue: only memory limits it.
  private static let segments = 1_000_000

  func validate() throws {
    try SegmentOptions.validate(segment, jobs)
    if inputs.isEmpty { throw ValidationError("no input; name a folder of pictures") }
    try requireName("--to", to, such: "film.mp4")
    try FilmSizeOptions.requireFilm(to, "film")
    try size.validate(for: form)
    try part.requireNoInstant(to)
    try part.validate(for: form)
    try idle.validate(for: form, at: part.clip(idle: nil).speed)
    try map.validate(for: form, named: to)
    if assumedStart != nil { try part.requireNoClock() }
    _ = try canvasSize()
    if recording == nil { _ = try input() }
  }

  var form: FilmForm { FilmForm(ofName: to, maxSide: size.maxSide) }

  /// - Throws: wrong usage.
  private func canvasSize() throws -> PixelSize? {
    guard let canvas else { return nil }
    guard form == .mp4 else {
      throw ValidationError("--canvas is for MP4; other forms have one canvas: see --max-side")
    }
    let sides = canvas.split(separator: "x", omittingEmptySubsequences: false).compactMap { Int($0) }
    guard sides.count == 2, sides.allSatisfy((16...8_192).contains) else {
      throw ValidationError("--canvas '\(canvas)': write its width and height, 16 to 8192, as 1280x720")
    }
    // H.264 has no odd sides.
    return PixelSize(width: sides[0] + sides[0] % 2, height: sides[1] + sides[1] % 2)
  }

  /// The start of numbered pictures, or of a list of durations, if nobody states it.
  private var assumedStart: Int64? {
    start == nil && (fps != nil || capture.areDurations) ? Self.unknownStart : nil
  }

  private func input() throws -> InputOptions {
    // A pattern tells the sessions of inputs, and a film shows one.
    let session = try capture.names.pattern() == nil ? Self.session : nil
    var options = try capture.options(session: session, start: start ?? assumedStart.map { "\($0)" }, fps: fps)
    if start == nil { options.assumedStartMs = Self.unknownStart }
    return options
  }

  func execute() throws {
    if let recording { return try film(of: recording) }
    try requireOneRecording()
    let target = try Stitching.file(to)
    try form.requireEncoder(for: target)
    try map.check()
    try requireNoInput(target)
    var options = try encoding.encoder(input(), segment: segment)
    options.input.target = target
    options.input.labels = try labels.file(forInputs: inputs.count)
    if form == .mp4 { options.maxSide = size.maxSide }
    options.canvas = try canvasSize()
    options.limits.frames = max(options.limits.frames, Limits.ofFolder.frames)
    options.limits.entries = max(options.limits.entries, Limits.ofFolder.entries)
    options.limits.segments = max(options.limits.segments, Self.segments)
    options.limits.splitsFolders = true
    if segment == nil { options.film = try FilmCuts(part.clip(idle: nil).speed, form) }
    options.limits.followsLinks = true
    // Reads the segments that this process has encoded.
    try FormatLibrary.load()
    let film = try FilmSegments(
      in: DurableFile.parentDirectory(of: target), assumedStart: start == nil ? Self.unknownStart : nil,
      decoders: options.decoders)
    let signals = try TerminationSignals()
    let notes = InputNotes(try placedInputs(options))
    // Each of several folders would have all labels.
    try labels.requireOne(of: notes.inputs.count)
    try encode(into: film, options, signals, notes)
    var result = try withProgress(in: form.unit, signals) { advance in
      try film.film(
        showing: part.clip(idle: idle.rule()), as: form, to: to, gaps: gaps ?? .hold, progress: advance)
    }
    try map.write(result)
    for warning in result.warnings { say("\(warning.file): \(warning.what)") }
    for advice in [result.adviceOnSizes(form), result.adviceOnGaps(gaps), result.adviceOnStills].compactMap(\.self) {
      say(advice)
    }
    result.warnings = notes.all + result.warnings
    results.print(json: result.json, text: result.text(of: form, at: to))
  }

  /// A picture of the input is not replaced by the poster of its film.
  ///
  /// - Throws: ``BadTarget``.
  private func requireNoInput(_ target: String) throws {
    guard case .poster = form, DurableFile.exists(target), FileKind.isImage(target), !FilmMark.isOn(fileAt: target)
    else { return }
    let isInput = inputs.contains { input in
      let path = DurableFile.resolved(input)
      return target == path || target.hasPrefix(path.asFolder)
    }
    guard isInput else { return }
    throw BadTarget(
      path: to, cause: "a picture of the input, which encoder-worker has not written", advice: "name another file")
  }

  /// Returns the inputs in their order. Folders of numbered pictures stand for the folder around them.
  private func placedInputs(_ options: BatchEncoder.Options) throws -> [(path: String, inputs: [String])] {
    // The film of a run before is no picture that `*.png` names.
    let inputs = inputs.filter { !FileKind.isImage($0) || DurableFile.resolved($0) != options.input.target }
    guard case .numbers? = options.input.times else { return inputs.map { ($0, [$0]) } }
    return try inputs.map { path in
      guard let folders = try NumberedFolders(in: path, limits: options.limits) else { return (path, [path]) }
      let rate = fps.map { " --fps \($0.shellWord)" } ?? ""
      let fault = folders.fault(in: path) { paths in
        "encoder-worker film \(paths.map(\.shellWord).joined(separator: " "))\(rate) --to \(to.shellWord)"
      }
      if let fault { throw fault }
      return (path, folders.paths.map { path.asFolder + $0 })
    }
  }

  private func encode(
    into film: FilmSegments, _ options: BatchEncoder.Options, _ signals: TerminationSignals, _ notes: InputNotes
  ) throws {
    let keyFrames = KeyFrameCache()
    let row = InputRow(
      options.input, isWithoutClock: assumedStart != nil, overlaps: .refused(maxHoldMs: options.maxHoldMs))
    try BatchRun(BatchSelection.batches(notes.inputs), encoding.partLimits(options), row: row, accepts: loss.accept)
      .workOff(
        threads: jobs ?? 1, signals: signals, unit: "inputs",
        makeEncoder: { BatchEncoder(options, publishingTo: film, keyFrames: keyFrames) },
        check: { try Self.requireOneSession($0, $1) }, conclude: { conclude($0, $1, notes) })
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
  private func conclude(_ path: String, _ outcome: BatchRun.Outcome, _ notes: InputNotes) -> ExitCode? {
    do {
      for receipt in try outcome.get() {
        notes.add(receipt.refused.map { "refused \($0.source): \($0.reason)" } + receipt.warnings, on: path)
      }
      for refused in try outcome.get().flatMap(\.refusedSessions) {
        say("\(path): \(refused.error.advice); or leave it out with --accept")
        return ExitStatus.badBatch
      }
      return nil
    } catch let same as SamePictures {
      notes.add(["\(same)"], on: path)
      return nil
    } catch {
      switch Disposition(of: LossOption.named(in: error), batch: path) {
      case .quarantine(let reason):
        say("\(path): \(reason); \(reason.advice)")
        return ExitStatus.badBatch
      case .handBack: return ExitStatus.temporaryFailure
      case .retry, .unknown:
        say("encoder-worker: \(path): \(error); nothing is lost, fix it and run again", .error)
        return ExitStatus.afterRetry(of: error)
      }
    }
  }
}

/// Notes on the inputs of a film, in their order.
private final class InputNotes: Sendable {
  /// The inputs, with the folders that stand for one.
  let inputs: [String]
  private let order: [String]
  private let notes: Mutex<[String: [String]]>

  init(_ placed: [(path: String, inputs: [String])]) {
    inputs = placed.flatMap(\.inputs)
    order = placed.flatMap { [$0.path] + $0.inputs }
    notes = Mutex([:])
    for (path, inputs) in placed where inputs.count > 1 || inputs != [path] {
      add(
        [
          inputs.count == 1
            ? "its pictures are those in \(inputs[0])"
            : "its \(inputs.count) folders are shown one behind the other: \(inputs[0]) to \(inputs[inputs.count - 1])"
        ], on: path)
    }
  }

  func add(_ texts: [String], on path: String) {
    for text in texts { say("\(path): \(text)") }
    notes.withLock { $0[path, default: []] += texts }
  }

  var all: [Problem] {
    let notes = notes.withLock { $0 }
    var told: Set<String> = []
    let first = order.filter { told.insert($0).inserted }
    // Images that are named one by one are in the folder of the first.
    let others = notes.keys.filter { !told.contains($0) }.sorted()
    return (first + others).flatMap { path in (notes[path] ?? []).map { Problem(file: path, what: $0) } }
  }
}
