import ArgumentParser
import FileSystem
import SegmentEncoder
import Sessions

extension GapRule: ExpressibleByArgument {}

enum StitchFormat: String, ExpressibleByArgument, CaseIterable {
  case mp4, hls
}

struct StitchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stitch",
    abstract: "Make one MP4 or an HLS stream of a session, without re-encoding.",
    discussion: """
      mp4: each captured frame is shown at its capture, counted from the session's start; the timing track comes along; gaps are chapters, or left out with --gaps cut.
      hls: DIR/multivariant.m3u8, DIR/session.m3u8, DIR/iframes.m3u8 and a CMAF fragment for each segment, at the same times; players skip gaps. What is in DIR already is used again.
      """)

  @Argument(
    help: ArgumentHelp("A published session: OUTPUT/SESSION.", valueName: "session-dir"), completion: .directory)
  var session: String

  @Option(
    help: ArgumentHelp("The film to write, replaced when it is there; of hls the directory.", valueName: "path"),
    completion: .file())
  var to: String

  @Option(help: "mp4 or hls.")
  var format = StitchFormat.mp4

  @Option(help: "hold: the picture before a gap stays; cut: gaps are left out. (default: hold)")
  var gaps: GapRule?

  @Flag(help: "The result as JSON.")
  var json = false

  @OptionGroup
  var sandbox: SandboxOptions

  @OptionGroup
  var settings: SettingsOption

  func validate() throws {
    if to.isEmpty { throw ValidationError("--to is empty") }
    if format == .mp4, to.hasSuffix(".m3u8") { throw ValidationError("for a playlist: --to DIR --format hls") }
    if format == .hls, gaps != nil {
      throw ValidationError("--gaps is for films; in an HLS playlist gaps are marked, and players skip them")
    }
  }

  func run() throws {
    try reportingFailures {
      let decoders = try sandbox.videoDecoders()
      let signals = try TerminationSignals()
      var progress = Progress()
      defer { progress.finish() }
      func advance(_ done: Int, _ total: Int) throws {
        progress.show(done, of: total, "segments")
        if signals.wait(ms: 0) { throw Cancelled() }
      }
      let result =
        switch format {
        case .mp4:
          try Stitching.film(of: session, to: to, gaps: gaps ?? .hold, decoders: decoders, progress: advance)
        case .hls: try Stitching.hls(of: session, to: to, decoders: decoders, progress: advance)
        }
      progress.finish()
      for warning in result.warnings { say("\(session): \(warning.file): \(warning.what)") }
      answer(
        json
          ? result.json
          : "\(result.file): \(result.durationMs) ms, \(count(result.segments, "segment")), \(result.bytes) bytes")
    }
  }
}
