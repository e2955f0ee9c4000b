import ArgumentParser
import Encoding
import FileSystem
import SegmentEncoder
import Sessions

struct TextCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "text",
    abstract: "Read the words in pictures, so that serve finds them.",
    discussion: """
      Reads published pictures with tesseract (Debian: tesseract-ocr), and writes the words, their places and their times beside each segment: segment-<start>.text.json. Segments that have them are left out. Masks are painted in published pictures: nothing under a mask is read.

      Words on screen become searchable, also what users type and secrets that are shown. About one word in twenty is missed.
      """)

  static let page = HelpPage(example: "text sessions/9f0c", common: ["again", "text-language", "json"])

  @Argument(
    help: ArgumentHelp(
      "Sessions (OUTPUT/SESSION), or an OUTPUT with all its sessions.", valueName: "session-dir"),
    completion: .directory)
  var sessions: [String]

  @Flag(help: "Read segments again that have their words.")
  var again = false

  @OptionGroup var language: TextLanguageOption
  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func execute() throws {
    let decoders = try sandbox.videoDecoders()
    let engine = try language.engine(sandbox)
    // Before the first session: a second pair would miss signals.
    let signals = try TerminationSignals()
    var isBad = false
    for path in sessions.flatMap(VerifyCommand.sessions) {
      do {
        let report = try withProgress(in: "segments", signals) { advance in
          var isStopped = false
          let cancellation = Cancellation {
            isStopped = isStopped || signals.takePending()
            return isStopped
          }
          let directory = try SessionDirectory(at: path, decoders: decoders)
          return try SessionText(engine, of: directory, cancellation: cancellation)
            .write(again ? .all : .invalid, progress: advance)
        }
        isBad = isBad || !report.problems.isEmpty
        for problem in report.warnings + report.problems { say("\(path): \(problem.file): \(problem.what)") }
        results.print(json: report.json, text: Self.text(report, in: path))
      } catch let bad as BadSession {
        say("encoder-worker: \(bad)", .error)
        isBad = true
      }
    }
    if isBad { throw ExitStatus.badBatch }
  }

  /// The last line is the same for a run that has nothing left to read.
  private static func text(_ report: SessionTextReport, in path: String) -> String {
    let damaged = report.problems.isEmpty ? "" : ", \(report.problems.count) damaged"
    return "\(report.session): \(count(report.words, "word")) in \(count(report.pictures, "picture")) of "
      + "\(report.written) of \(count(report.segments, "segment"))\n"
      + "\(report.session): the words of \(count(report.segments, "segment")) are in \(path.oneLine)\(damaged)"
  }
}
