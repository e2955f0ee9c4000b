import ArgumentParser
import Encoding
import FrameBatches
import ISOMedia
import JSON
import SegmentEncoder
import Sessions

struct FrameCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "frame",
    abstract: "Write the picture on screen at an instant of a session.",
    discussion: """
      The picture has the size of the capture. One segment is read, and decoded up to the picture. In a gap, and outside of the session, the bounds are reported, and the exit status is 65. A picture is on screen from its capture until just before the next one.
      """)

  @Argument(
    help: ArgumentHelp("A published session: OUTPUT/SESSION.", valueName: "session-dir"), completion: .directory)
  var session: String

  @Option(
    help: ArgumentHelp(
      "The instant: unix milliseconds, ISO 8601 with a zone, or +12.5s from the session's start.", valueName: "t"))
  var at: String

  @Option(
    help: .call("The image to write or replace: a .png or a .jpg.", valueName: "file", example: "frame.png"),
    completion: .file())
  var to: String

  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if SessionInstant(at) == nil { throw ValidationError("--at '\(at)': \(SessionInstant.fault(of: at))") }
    if ImageFormat(ofName: to) == nil { throw ValidationError("--to '\(to)': name a file that ends in .png or .jpg") }
  }

  func execute() throws {
    guard let instant = SessionInstant(at), let format = ImageFormat(ofName: to) else { return }
    let decoders = try sandbox.videoDecoders()
    do {
      let frame = try SessionFrame(of: session, at: instant, decoders: decoders)
      let written = try frame.write(to: to, as: format)
      let facts: [String: JSONValue] = ["file": .string(written.file), "bytes": .number(written.bytes)]
      results.print(
        json: JSONValue.object(frame.members.merging(facts) { $1 }).line, text: Self.text(frame, written.file))
    } catch let nothing as NothingOnScreen {
      if results.json { answer(JSONValue.object(nothing.members).line) }
      throw nothing
    }
  }

  private static func text(_ frame: SessionFrame, _ file: String) -> String {
    let shown = frame.shown
    return "\(file): captured \(shown.frame.timeMs.dateText), on screen until \(shown.shownMs.upperBound.dateText), "
      + "\(shown.segment.width)×\(shown.segment.height) pixels, from \(shown.segment.file)"
  }
}
