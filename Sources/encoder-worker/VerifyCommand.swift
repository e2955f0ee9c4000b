import ArgumentParser
import SegmentEncoder

struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check sessions against all that their manifests claim.",
    discussion: """
      Digests, structure, every instant to the tick, every picture decoded, overlaps, missing parts, orphans, session.json and session.ffconcat. Exit status 65 when anything is wrong.
      """)

  @Argument(help: ArgumentHelp("Published sessions: OUTPUT/SESSION.", valueName: "session-dir"))
  var sessions: [String]

  @Flag(help: "Rebuild session.json and session.ffconcat of sessions whose segments are all right.")
  var repair = false

  @Flag(help: "Results as JSON, one object a line.")
  var json = false

  func run() throws {
    var isBad = false
    for session in sessions {
      do {
        try reportingFailures {
          let report = try Verification.report(on: session, repair: repair)
          isBad = isBad || !report.problems.isEmpty
          answer(json ? report.json : Self.text(report))
        }
      } catch let status as ExitCode where status == ExitStatus.badBatch {
        // The other sessions are checked all the same.
        isBad = true
      }
    }
    if isBad { throw ExitStatus.badBatch }
  }

  private static func text(_ report: VerificationReport) -> String {
    let verdict = report.problems.isEmpty ? "ok" : "\(report.problems.count) wrong"
    let head =
      "\(report.session): \(verdict), \(report.segments) segments, \(report.frames) frames, \(report.durationMs) ms"
    return ([head] + report.problems.map { "  \($0.file): \($0.what)" }).joined(separator: "\n")
  }
}
