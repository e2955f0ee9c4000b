import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions

extension GapRule: ExpressibleByArgument {}

enum StitchFormat: String, ExpressibleByArgument, CaseIterable {
  case mp4, hls
}

struct StitchCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "stitch",
    abstract: "Make one MP4 or an HLS stream of a session, without re-encoding.",
    discussion: """
      SESSION_DIR is a published session, or a directory of finished MP4 segments and their Sentry events, as import reads them.

      mp4: each frame is shown at its capture minus the session's start. The film has the timing track, and gaps are chapters.
      --from and --to-time cut out a part: it begins with the picture on screen, and ends exactly.
      hls: DIR/multivariant.m3u8, DIR/session.m3u8, DIR/iframes.m3u8 and a CMAF fragment for each segment, at the same times. Players skip gaps. Existing files in DIR are used again.
      """)

  @Argument(
    help: ArgumentHelp("A published session, OUTPUT/SESSION, or finished segments.", valueName: "session-dir"),
    completion: .directory)
  var session: String

  @Option(
    help: .call("The MP4 to write or replace; for hls, the directory.", valueName: "path", example: "film.mp4"),
    completion: .file())
  var to: String

  @Option(help: "mp4 or hls.")
  var format = StitchFormat.mp4

  @Option(
    help: .setting(
      "Gaps of the film: hold keeps the picture before the gap, cut leaves the gap out.", default: "hold"))
  var gaps: GapRule?

  @Option(help: ArgumentHelp("Begin at this instant: unix ms, ISO 8601, or +12.5s from the start.", valueName: "t"))
  var from: String?

  @Option(name: .customLong("to-time"), help: ArgumentHelp("End at this instant.", valueName: "t"))
  var toTime: String?

  @Option(help: ArgumentHelp("Speed of the film, 0.1 to 100. (default: 1)", valueName: "x"))
  var speed: String?

  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if to.isEmpty { throw ValidationError("--to is empty") }
    if format == .mp4, to.hasSuffix(".m3u8") { throw ValidationError("for a playlist: --to DIR --format hls") }
    let others = [".mkv", ".webm", ".avi", ".mov", ".ts", ".gif", ".wmv", ".flv"]
    if format == .mp4, let suffix = others.first(where: to.lowercased().hasSuffix) {
      throw ValidationError("--to '\(to)': stitch writes MP4, not \(suffix.dropFirst()); name a file that ends in .mp4")
    }
    if format == .hls, gaps != nil {
      throw ValidationError("--gaps is for films; in an HLS playlist gaps are marked, and players skip them")
    }
    if format == .hls, from != nil || toTime != nil || speed != nil {
      throw ValidationError("--from, --to-time and --speed are for films; HLS has whole segments: use --format mp4")
    }
    if from != nil, toTime == nil, SessionInstant(to) != nil {
      throw ValidationError("--to '\(to)' is an instant: --to names the film, and --to-time its end")
    }
    _ = try clip()
  }

  private func clip() throws -> Clip {
    func instant(_ option: String, _ text: String?) throws -> SessionInstant? {
      guard let text else { return nil }
      guard let instant = SessionInstant(text) else {
        throw ValidationError("\(option) '\(text)': \(SessionInstant.fault(of: text))")
      }
      return instant
    }
    guard let speed = FilmSpeed(speed ?? "1") else {
      throw ValidationError("--speed '\(speed ?? "")': it is \(FilmSpeed.rule)")
    }
    return Clip(from: try instant("--from", from), to: try instant("--to-time", toTime), speed: speed)
  }

  func execute() throws {
    let decoders = try sandbox.videoDecoders()
    try ImportCommand.withSession(session, sandbox, decoders) { try stitch($0, decoders) }
  }

  private func stitch(_ path: String, _ decoders: DecoderForkServer?) throws {
    let result = try withProgress(in: "segments") { advance in
      switch format {
      case .mp4:
        try Stitching.film(
          of: path, showing: clip(), to: to, gaps: gaps ?? .hold, decoders: decoders, progress: advance)
      case .hls: try Stitching.hls(of: path, to: to, decoders: decoders, progress: advance)
      }
    }
    for warning in result.warnings { say("\(session): \(warning.file): \(warning.what)") }
    results.print(
      json: result.json,
      text: "\(result.file): \(result.durationMs) ms, \(count(result.segments, "segment")), \(result.bytes) bytes")
  }
}
