import ArgumentParser
import Encoding
import FileSystem
import SegmentEncoder
import Sessions

struct VerifyCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check sessions: digests, times, every picture.",
    discussion: """
      Checks digests, structure, every time to the tick, overlaps, missing parts, orphans, session.json, session.ffconcat and Sentry's events. Decodes every picture. Exit status 65 if anything is wrong.
      """)

  static let page = HelpPage(example: "verify sessions", common: ["repair", "json"])

  @Argument(
    help: ArgumentHelp(
      "Sessions (OUTPUT/SESSION), or an OUTPUT with all its sessions.", valueName: "session-dir"),
    completion: .directory)
  var sessions: [String]

  @Flag(
    help: "Rebuild session.json, session.ffconcat and Sentry's events where all segments are intact.")
  var repair = false

  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func execute() throws {
    var isBad = false
    let decoders = try sandbox.videoDecoders()
    for (index, session) in sessions.flatMap(Self.sessions).enumerated() {
      var progress = Progress()
      defer { progress.finish() }
      let report = try report(on: session, decoders) { progress.show($0, of: $1, "segments") }
      progress.finish()
      isBad = isBad || !report.problems.isEmpty
      if index == 0 && !results.json { answer(Self.row("", "segments", "frames", "duration", "session")) }
      results.print(json: report.json, text: Self.text(report))
    }
    if isBad { throw ExitStatus.badBatch }
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

  /// Returns a report also for a path that is no session: the command still checks the others.
  private func report(
    on session: String, _ decoders: DecoderForkServer?, progress: (Int, Int) -> Void
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
    return ([head] + report.problems.map { "  \($0.file): \($0.what)" }).map(\.oneLine).joined(separator: "\n")
  }

  /// A table's row; the session, which may be long, comes last.
  private static func row(
    _ verdict: String, _ segments: String, _ frames: String, _ duration: String, _ session: String
  ) -> String {
    verdict.leftAligned(9) + segments.rightAligned(8) + frames.rightAligned(9) + duration.rightAligned(15) + "  "
      + session
  }
}
