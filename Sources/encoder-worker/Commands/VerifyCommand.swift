import ArgumentParser
import Encoding
import SegmentEncoder
import Sessions

struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check sessions against all that their manifests claim.",
    discussion: """
      Digests, structure, every instant to the tick, every picture decoded, overlaps, missing parts, orphans, session.json, session.ffconcat and, where there are any, the events for Sentry. Exit status 65 when anything is wrong.
      """)

  @Argument(help: ArgumentHelp("Published sessions: OUTPUT/SESSION.", valueName: "session-dir"), completion: .directory)
  var sessions: [String]

  @Flag(
    help: "Rebuild session.json, session.ffconcat and the events for Sentry of sessions whose segments are all right.")
  var repair = false

  @Flag(help: "Results as JSON, one object a line.")
  var json = false

  @OptionGroup
  var sandbox: SandboxOptions

  @OptionGroup
  var settings: SettingsOption

  func run() throws {
    var isBad = false
    var hasHead = json
    var decoders: DecoderHost?
    try reportingFailures { decoders = try sandbox.videoDecoders() }
    for session in sessions {
      try reportingFailures {
        var progress = Progress()
        defer { progress.finish() }
        let report = try Self.report(on: session, repair: repair, decoders) { progress.show($0, of: $1, "segments") }
        progress.finish()
        isBad = isBad || !report.problems.isEmpty
        if !hasHead { answer(Self.row("", "segments", "frames", "duration", "session")) }
        hasHead = true
        answer(json ? report.json : Self.text(report))
      }
    }
    if isBad { throw ExitStatus.badBatch }
  }

  /// What is no session has a report, too, and the others are checked all the same.
  private static func report(
    on session: String, repair: Bool, _ decoders: DecoderHost?, progress: (Int, Int) -> Void
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
      verdict, "\(report.segments)", "\(report.frames)", "\(report.durationMs) ms", report.session)
    return ([head] + report.problems.map { "  \($0.file): \($0.what)" }).map(\.oneLine).joined(separator: "\n")
  }

  /// A table's row; the session, which may be long, comes last.
  private static func row(
    _ verdict: String, _ segments: String, _ frames: String, _ duration: String, _ session: String
  )
    -> String
  {
    func left(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(0, width - text.count))
    }
    func right(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(0, width - text.count)) + text
    }
    return left(verdict, 9) + right(segments, 8) + right(frames, 9) + right(duration, 15) + "  " + session
  }
}
