import ArgumentParser
import Encoding
import FileSystem
import SegmentEncoder
import Sessions

struct TextCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "text",
    abstract: "Read the words in pictures, so that serve finds them.",
    usage: """
      encoder-worker text <session-dir> ... [<options>]
      encoder-worker text <session> ... --store <url> [<options>]
      """,
    discussion: """
      Reads published pictures with tesseract (Debian: tesseract-ocr), and writes the words, their places and their times beside each segment: segment-<start>.text.json. Segments that have them are left out. Masks are painted in published pictures: nothing under a mask is read. With --store, sessions are IDs; what has no words yet is copied below TMPDIR for the time of the call.

      Words on screen become searchable, also what users type and secrets that are shown. About one word in twenty is missed.
      """)

  static let page = HelpPage(example: "text sessions/9f0c", common: ["again", "text-language", "store", "json"])

  @Argument(
    help: ArgumentHelp(
      "Sessions (OUTPUT/SESSION), or an OUTPUT with all its sessions; with --store, IDs.", valueName: "session-dir"),
    completion: .directory)
  var sessions: [String]

  @OptionGroup var place: SessionStoreOptions

  @Flag(help: "Read segments again that have their words.")
  var again = false

  @OptionGroup var language: TextLanguageOption
  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws { for session in sessions { _ = try place.session(session) } }

  func execute() throws {
    let decoders = try sandbox.videoDecoders()
    let engine = try language.engine(sandbox)
    // Before the first session: a second pair would miss signals.
    let stop = SignalledStop(try TerminationSignals())
    let store = try sessions.contains { try place.session($0) != nil } ? place.sessions(stop) : nil
    var isBad = false
    for session in sessions {
      let id = try place.session(session)
      for path in id == nil ? VerifyCommand.sessions(in: session) : [session] {
        do {
          let (report, place) =
            try id.flatMap { id in try store.map { try read(id, in: $0, engine, decoders, stop) } }
            ?? read(path, engine, decoders, stop)
          isBad = isBad || !report.problems.isEmpty
          for problem in report.warnings + report.problems { say("\(place): \(problem.file): \(problem.what)") }
          results.print(json: report.json, text: Self.text(report, in: place))
        } catch let bad as BadSession {
          say("encoder-worker: \(bad)", .error)
          isBad = true
        }
      }
    }
    if isBad { throw ExitStatus.badBatch }
  }

  /// Reads a session of a directory.
  ///
  /// - Returns: the report, and the place of the words.
  private func read(
    _ path: String, _ engine: TextEngine, _ decoders: DecoderForkServer?, _ stop: SignalledStop
  ) throws -> (SessionTextReport, String) {
    let directory = try SessionDirectory(at: path, decoders: decoders)
    let text = SessionText(engine, of: directory, cancellation: Cancellation { stop.isRequested })
    let report = try showingProgress(stop) { advance in
      try text.write(again ? .all : .invalid, progress: advance("segments"))
    }
    return (report, path)
  }

  /// Reads a session of a store.
  private func read(
    _ id: SessionID, in store: StoredSessions, _ engine: TextEngine, _ decoders: DecoderForkServer?,
    _ stop: SignalledStop
  ) throws -> (SessionTextReport, String) {
    let report = try SessionStoreOptions.withScratch { scratch in
      try showingProgress(stop) { advance in
        try store.readText(
          of: id, engine, again ? .all : .invalid, in: scratch, decoders: decoders,
          cancellation: Cancellation { stop.isRequested }, copying: advance("objects"), progress: advance("segments"))
      }
    }
    return (report, store.place(of: id))
  }

  /// Calls `body` with functions that show the progress, by its unit.
  private func showingProgress<R>(
    _ stop: SignalledStop, _ body: (_ advance: (String) -> (Int, Int) throws -> Void) throws -> R
  ) throws -> R {
    var progress = Progress()
    defer { progress.finish() }
    return try body { unit in
      { done, total in
        progress.show(done, of: total, unit)
        try stop.check()
      }
    }
  }

  /// The last line is the same for a run that has nothing left to read.
  private static func text(_ report: SessionTextReport, in path: String) -> String {
    let damaged = report.problems.isEmpty ? "" : ", \(report.problems.count) damaged"
    return "\(report.session): \(count(report.words, "word")) in \(count(report.pictures, "picture")) of "
      + "\(report.written) of \(count(report.segments, "segment"))\n"
      + "\(report.session): the words of \(count(report.segments, "segment")) are in \(path.oneLine)\(damaged)"
  }
}
