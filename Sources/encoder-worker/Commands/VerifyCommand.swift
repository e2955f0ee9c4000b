import ArgumentParser
import Encoding
import FileSystem
import SegmentEncoder
import Sessions

struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check sessions: digests, times, every picture.",
    discussion: """
      Checks digests, structure, every time to the tick, overlaps, missing parts, orphans, session.json, session.ffconcat and Sentry's events. Decodes every picture. Exit status 65 if anything is wrong.
      """)

  @Argument(
    help: ArgumentHelp(
      "Sessions (OUTPUT/SESSION), or an OUTPUT with all its sessions.", valueName: "session-dir"),
    completion: .directory)
  var sessions: [String]

  @Flag(
    help: "Rebuild session.json, session.ffconcat and Sentry's events where all segments are intact.")
  var repair = false

  @Flag(help: "Print results as JSON, one object a line.")
  var json = false

  @OptionGroup
  var sandbox: SandboxOptions

  @OptionGroup
  var settings: SettingsOption

  func run() throws {
    var isBad = false
    var hasHead = json
    var decoders: DecoderForkServer?
    try reportingFailures { decoders = try sandbox.videoDecoders() }
    for session in sessions.flatMap(Self.sessions) {
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

  /// The sessions in an output; any other path as it is.
  private static func sessions(in path: String) -> [String] {
    guard let entries = try? Directory(opening: path).entries(), entries.allSatisfy({ $0.kind != .file }) else {
      return [path]
    }
    let place = path.hasSuffix("/") ? path : path + "/"
    let found = entries.map(\.name).filter { !$0.hasPrefix(".") && DurableFile.exists("\(place)\($0)/session.json") }
    return found.isEmpty ? [path] : found.sorted().map { place + $0 }
  }

  /// A path that is no session has a report, too, and the others are still checked.
  private static func report(
    on session: String, repair: Bool, _ decoders: DecoderForkServer?, progress: (Int, Int) -> Void
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
