import ArgumentParser
import SegmentEncoder

extension GapRule: ExpressibleByArgument {}

struct StitchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stitch",
    abstract: "Make one MP4 of a session, without re-encoding.",
    discussion: """
      Each captured frame is shown at its capture, counted from the session's start; the timing track comes along. With --gaps cut, gaps are left out. Gaps are chapters.
      """)

  @Argument(help: ArgumentHelp("A published session: OUTPUT/SESSION.", valueName: "session-dir"))
  var session: String

  @Option(help: ArgumentHelp("The film to write; replaced when it is there.", valueName: "file.mp4"))
  var to: String

  @Option(help: "hold: the picture before a gap stays; cut: gaps are left out.")
  var gaps = GapRule.hold

  @Flag(help: "The result as JSON.")
  var json = false

  func run() throws {
    try reportingFailures {
      let film = try Stitching.film(of: session, to: to, gaps: gaps)
      answer(
        json
          ? film.json
          : "\(film.file): \(film.durationMs) ms, \(film.segments) segments, \(film.samples) samples, \(film.bytes) bytes"
      )
    }
  }
}
