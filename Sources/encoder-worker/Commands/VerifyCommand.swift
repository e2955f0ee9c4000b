import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions

struct VerifyCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check sessions: digests, times, every picture.",
    usage: """
      encoder-worker verify <session-dir> ... [<options>]
      encoder-worker verify [<session> ...] --store <url> [<options>]
      """,
    discussion: """
      Checks digests, structure, every time to the tick, overlaps, missing parts, orphans, session.json, session.ffconcat and Sentry's events. Decodes every picture. Exit status 65 if anything is wrong.

      With --store, sessions are IDs; without IDs all sessions of the store are checked. Each is copied below TMPDIR for the time of its check. Objects that no index lists are orphans, unless a worker may have written them within two hours.
      """)

  static let page = HelpPage(example: "verify sessions", common: ["repair", "store", "report", "json"])

  @Argument(
    help: ArgumentHelp(
      "Sessions (OUTPUT/SESSION), or an OUTPUT with all its sessions; with --store, IDs, or none for all.",
      valueName: "session-dir"),
    completion: .directory)
  var sessions: [String] = []

  @OptionGroup var place: SessionStoreOptions

  @Flag(
    help: "Rebuild session.json, session.ffconcat and Sentry's events where all segments are intact.")
  var repair = false

  @OptionGroup var report: ReportOptions
  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    let stored = try sessions.compactMap(place.session)
    if sessions.isEmpty && place.store == nil {
      throw MissingOption.error(
        "<session-dir> ...", "Sessions, or an OUTPUT; or --store URL for all sessions of a store.")
    }
    if report.report != nil && sessions.count != 1 { throw Self.oneSession }
    if repair, sessions.isEmpty || !stored.isEmpty {
      throw ValidationError(
        "--repair is for directories; in a store, a worker rebuilds the views with the next batch of the session, also with one that is published already"
      )
    }
  }

  private static let oneSession = ValidationError("--report is about one session; name that")

  func execute() throws {
    try report.requireTarget()
    let decoders = try sandbox.videoDecoders()
    var printed = Printed(results)
    for session in sessions {
      guard try place.session(session) == nil else { continue }
      let paths = Self.sessions(in: session)
      if report.report != nil && paths.count > 1 { throw Self.oneSession }
      for path in paths {
        var progress = Progress()
        defer { progress.finish() }
        let verified = try verified(path, decoders) { progress.show($0, of: $1, "segments") }
        progress.finish()
        printed.add(verified)
        tell(try written(verified, of: DurableFile.isReachableDirectory(path) ? path : nil))
      }
    }
    let stored = try sessions.compactMap(place.session)
    if sessions.isEmpty || !stored.isEmpty { try verify(stored, decoders, &printed) }
    if printed.isBad { throw ExitStatus.badBatch }
  }

  /// Checks sessions of the store.
  ///
  /// - Parameter named: none for all.
  private func verify(_ named: [SessionID], _ decoders: DecoderForkServer?, _ printed: inout Printed) throws {
    let stop = SignalledStop(try TerminationSignals())
    let store = try place.sessions(stop)
    for id in try named.isEmpty ? store.ids() : named {
      var progress = Progress()
      defer { progress.finish() }
      func advance(_ unit: String) -> (Int, Int) throws -> Void {
        { done, total in
          progress.show(done, of: total, unit)
          try stop.check()
        }
      }
      var written: Report.Written?
      let report = try SessionStoreOptions.withScratch { scratch in
        do {
          if named.isEmpty {
            return try store.verifyListed(
              id, in: scratch, decoders: decoders, copying: advance("objects"), progress: advance("segments"))
          }
          return try store.verify(
            id, in: scratch, decoders: decoders, copying: advance("objects"), progress: advance("segments")
          ) { copy, result in written = try self.written(result, of: copy) }
        } catch let bad as BadSession {
          let result = VerificationReport(of: bad)
          written = try self.written(result, of: nil)
          return result
        }
      }
      progress.finish()
      if let report { printed.add(report) }
      tell(written)
    }
  }

  /// The reports on standard output.
  private struct Printed {
    private let results: ResultOptions
    private var count = 0
    private(set) var isBad = false

    init(_ results: ResultOptions) { self.results = results }

    mutating func add(_ report: VerificationReport) {
      if count == 0 && !results.json { answer(VerifyCommand.row("", "segments", "frames", "duration", "session")) }
      count += 1
      isBad = isBad || !report.problems.isEmpty
      results.print(json: report.json, text: VerifyCommand.text(report))
    }
  }

  /// Returns the sessions in an output, or the path itself if it is no output.
  static func sessions(in path: String) -> [String] {
    // An output may have files of the operator.
    guard let entries = try? Directory(opening: path).entries(),
      !entries.contains(where: { $0.name == "session.json" })
    else {
      return [path]
    }
    let output = path.hasSuffix("/") ? path : path + "/"
    let names = entries.map(\.name).filter { !$0.hasPrefix(".") && DurableFile.exists("\(output)\($0)/session.json") }
    return names.isEmpty ? [path] : names.sorted().map { output + $0 }
  }

  /// Writes the report to hand on, if the call asks for it.
  ///
  /// - Parameter path: nil for a session that cannot be read.
  private func written(_ verified: VerificationReport, of path: String?) throws -> Report.Written? {
    try report.report.map { directory in
      try SessionReport.write(
        verified, of: path, to: directory, hasPixels: report.pixels, ReportOptions.origin(settings.config))
    }
  }

  /// Says where the report is.
  private func tell(_ written: Report.Written?) {
    if let written { results.print(json: written.json, text: written.text.oneLine) }
  }

  /// Returns the result also for a path that is no session: the command still checks the others.
  private func verified(
    _ session: String, _ decoders: DecoderForkServer?, progress: (Int, Int) -> Void
  ) throws -> VerificationReport {
    do {
      return try Verification.report(on: session, repair: repair, decoders: decoders, progress: progress)
    } catch let bad as BadSession {
      return VerificationReport(of: bad)
    }
  }

  private static func text(_ report: VerificationReport) -> String {
    let verdict = report.problems.isEmpty ? "ok" : "\(report.problems.count) wrong"
    let head = row(
      verdict, "\(report.segments)", "\(report.frames)", duration(ms: report.durationMs), report.session)
    let health = report.health?.sentence.map { ["  \($0)"] } ?? []
    return ([head] + health + report.problems.map { "  \($0.file): \($0.what)" }).map(\.oneLine).joined(separator: "\n")
  }

  /// A table's row; the session, which may be long, comes last.
  private static func row(
    _ verdict: String, _ segments: String, _ frames: String, _ duration: String, _ session: String
  ) -> String {
    verdict.leftAligned(9) + segments.rightAligned(8) + frames.rightAligned(9) + duration.rightAligned(15) + "  "
      + session
  }
}
