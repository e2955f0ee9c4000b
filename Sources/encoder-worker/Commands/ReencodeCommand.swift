import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import Reencoding
import SegmentEncoder
import Sessions
import Synchronization

/// A quality of segments, or an archive.
enum ReencodingQuality: String, CaseIterable, ExpressibleByArgument {
  case small, balanced, sharp, archive

  /// The quality of segments; nil for an archive.
  var segments: Quality? { Quality(rawValue: rawValue) }
}

struct ReencodeCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "reencode",
    abstract: "Encode a session or an MP4 again, with the same times.",
    discussion: """
      Times, holds, gaps and the timing track stay exactly as they are. SOURCE is a session, or an MP4 with H.264, HEVC or AV1: the times of its pictures become captures. With --store it is the ID of a session there. Its objects are copied below TMPDIR for the time of the call. The result goes to --output, or into the store under the name that --session gives. A second run continues a stopped one, and the result is the same bytes.
      """)

  static let page = HelpPage(
    example: "reencode sessions/9f0c --output smaller --quality small", required: [["output"], ["store", "session"]],
    common: ["quality", "max-side", "overlay", "overlay-time-zone", "jobs", "json"])

  @Argument(
    help: ArgumentHelp(
      "A published session, OUTPUT/SESSION, or an MP4; with --store, the ID of a session.", valueName: "source"),
    completion: .file())
  var source: String

  @OptionGroup var place: SessionStoreOptions

  @Option(
    name: .shortAndLong, help: .setting(Self.outputHelp, valueName: "dir", isNeeded: true), completion: .directory)
  var output: String?

  private static let outputHelp = "The directory for sessions."

  @OptionGroup var storeLayout: LayoutOption

  @Option(
    name: .shortAndLong,
    help: .setting(
      "small, balanced or sharp: fewer bytes, or more legible text. archive: few bytes, slowly, ten minutes a segment.",
      default: "that of the session, with --overlay or --max-side"))
  var quality: ReencodingQuality?

  @Option(help: .setting(FilmSizeOptions.sideHelp, valueName: "n"))
  var maxSide: Int?

  @Option(
    help: ArgumentHelp(
      SessionNameOption.idHelp
        + " (default: the MP4's name, or that of the session). Without --output it is the name in the store.",
      valueName: "id"))
  var session: String?

  @Option(
    help: ArgumentHelp(
      InputArguments.startHelp
        + " (default: from the MP4's timing track, name or creation time)",
      valueName: "time"))
  var start: String?

  @Option(
    name: .shortAndLong,
    help: .setting(SegmentOptions.jobsHelp, default: "the number of cores", valueName: "n"))
  var jobs: Int?

  @OptionGroup var texts: OverlayOptions
  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    try requireSessionID(session)
    try storeLayout.validate(withStore: target(place.session(source)) != nil)
    if let output { try requireName("--output", output, such: "sessions") }
    _ = try startMs()
    try require("--max-side", maxSide, in: 16...8_192)
    try require("--jobs", jobs, in: Jobs.range)
  }

  func execute() throws {
    let options = try options()
    // `config` shows the settings of a command without any.
    if quality == nil && options.maxSide == nil && options.overlay == nil {
      throw ValidationError("give --quality, or what else changes pictures: --overlay, --max-side")
    }
    let id = try place.session(source)
    if let id, let target = try target(id) {
      return try place.withCopy(of: id, StoredNeeds()) { try publish($0, as: target, options) }
    }
    guard let output else {
      throw MissingOption.error("--output <dir>", "\(Self.outputHelp) Or --store <url> and --session <id>.")
    }
    if let id {
      try SessionDirectory.requireOutside(output)
      let needs = StoredNeeds { try videos(of: $0, options.session ?? id, output, options) }
      return try place.withCopy(of: id, needs) { try reencode($0, to: output, options, at: "\(output)/") }
    }
    try reencode(source, to: output, options, at: "\(output)/")
  }

  /// Returns the name in the store of what is made of a session there; nil to make a directory.
  ///
  /// - Parameter id: of the source; nil for a path.
  private func target(_ id: SessionID?) throws -> SessionID? {
    guard let id, let session, !CallOptions.has("--output"), !CallOptions.has("-o") else { return nil }
    let target = SessionID(session)
    guard target != id else {
      throw ValidationError("--session \(session) is the source itself: name another session, or an --output directory")
    }
    return target
  }

  /// Makes a session below TMPDIR, and publishes it in the store.
  private func publish(_ source: String, as target: SessionID, _ options: Reencoding.Options) throws {
    let stop = SignalledStop(try TerminationSignals())
    let (objects, name) = try place.objects(isOverdue: { stop.isRequested })
    let worker = WorkerID()
    try objects.requireConditions(tryingAt: "incoming/.\(worker)", name: name)
    try SessionStoreOptions.withScratch { scratch in
      try reencode(source, to: scratch, options, at: name + "output/") {
        let staging = try Staging.temporary(for: worker)
        defer { staging.remove() }
        let store = ObjectStore(objects, name: name, staging: staging, layout: storeLayout.layout)
        let made = SessionDirectory(output: scratch, session: target)
        _ = try store.upload(made, cancellation: Cancellation { stop.isRequested })
      }
    }
  }

  /// Returns the starts of the segments that are not made yet; nil for all. An archive compares the key frames of all.
  private func videos(
    of path: String, _ id: SessionID, _ output: String, _ options: Reencoding.Options
  ) throws -> Set<Int64>? {
    guard !options.isArchive else { return nil }
    let made = try SessionDirectory(output: output, session: id).publishedStarts()
    return Set(try SessionDirectory(at: path).publishedStarts()).subtracting(made)
  }

  /// - Parameters:
  ///   - place: where the session will be, for messages.
  ///   - publish: called with the finished session.
  private func reencode(
    _ source: String, to output: String, _ options: Reencoding.Options, at place: String,
    publish: () throws -> Void = {}
  ) throws {
    let signals = try TerminationSignals()
    if Reencoding.isSession(source), start != nil {
      say("encoder-worker: a published session has its own instants: --start is for an MP4")
      throw ExitCode.validationFailure
    }
    if DurableFile.exists(source), !Reencoding.isSession(source), options.isArchive {
      say("encoder-worker: --quality archive is for a published session: reencode the MP4 to one first")
      throw ExitCode.validationFailure
    }
    if DurableFile.exists(source), !Reencoding.isSession(source),
      options.overlay?.parts.contains(where: { $0 == .events || $0 == .caption }) == true
    {
      say(
        "encoder-worker: an MP4 has no pointer events, notes and labels: --overlay events and caption are for a published session"
      )
      throw ExitCode.validationFailure
    }
    try SessionDirectory.requireOutside(output)
    var staging: Staging?
    defer { staging?.remove() }
    let work = try Reencoding(
      source, options,
      staging: {
        let made = try Staging(output: output, worker: WorkerID())
        staging = made
        return made
      }, cancellation: Cancellation { signals.wait(ms: 0) })
    let result = try Self.run(work, threads: Jobs.threads(jobs), signals)
    // A stopped call has made a part.
    guard result.encoded == work.owed else { return }
    try publish()
    results.print(
      json: result.json,
      text: "\(result.session): \(result.encoded) of \(count(result.segments, "segment")) made now\n"
        + "\(result.session): \(count(result.segments, "segment")), \(duration(ms: result.durationMs)), "
        + "\(size(result.bytes)), in \(place)\(result.session)")
  }

  /// Encodes a source, and shows the progress.
  static func run(_ work: Reencoding, threads: Int, _ signals: TerminationSignals) throws -> ReencodedSession {
    let done = Atomic<Int>(0)
    var progress = Progress()
    let runner = ParallelRunner(work.pieces)
    let end = Result {
      try runner.workOff(
        threads: threads, signals: signals,
        tick: { progress.show(done.load(ordering: .relaxed), of: work.owed, "segments") }
      ) {
        { piece in Self.encode(piece, of: work, runner, made: { done.add(1, ordering: .relaxed) }) }
      }
    }
    progress.finish()
    // Publish the finished segments as a session, also after a signal or a failure.
    let result = try work.finish(encoded: done.load(ordering: .relaxed))
    for warning in result.warnings { say("encoder-worker: \(warning)") }
    if runner.isCancelled {
      say("encoder-worker: stopped; \(count(work.owed - done.load(ordering: .relaxed), "segment")) to go, run it again")
    }
    try end.get()
    return result
  }

  /// - Throws: wrong usage.
  private func startMs() throws -> Int64? {
    guard let start else { return nil }
    do {
      return try InputOptions.instant(start)
    } catch {
      throw ValidationError("--start: \(error.cause)")
    }
  }

  private func options() throws -> Reencoding.Options {
    var options = Reencoding.Options()
    options.quality = quality?.segments
    options.isArchive = quality == .archive
    options.maxSide = maxSide
    options.overlay = try texts.chosen()
    options.session = session.flatMap { SessionID($0) }
    options.startMs = try startMs()
    options.decoders = try sandbox.videoDecoders()
    options.limits.decodeSeconds = sandbox.maxDecode
    return options
  }

  private static func encode(
    _ piece: Int, of work: Reencoding, _ runner: ParallelRunner<Int>, made: () -> Void
  ) -> ExitCode? {
    do {
      try reportingFailures { try work.encode(piece: piece, cancellation: runner.cancellation, made: made) }
      return nil
    } catch {
      return error as? ExitCode
    }
  }
}
