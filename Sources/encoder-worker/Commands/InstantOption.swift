import ArgumentParser
import Encoding
import FrameBatches
import ISOMedia
import JSON
import SegmentEncoder
import Sessions
import Showing

/// The option for the picture on screen at an instant.
struct InstantOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Write the picture on screen at this instant: unix ms, ISO 8601 with a zone, or +12.5s from the session's start.",
      valueName: "t"))
  var at: String?

  func validate() throws {
    if let at, SessionInstant(at) == nil { throw ValidationError("--at '\(at)': \(SessionInstant.fault(of: at))") }
  }

  /// The instant; nil without the option.
  var instant: SessionInstant? { at.flatMap { SessionInstant($0) } }
}

/// Writes the picture on screen at an instant of a published session.
func writePicture(
  at instant: SessionInstant, of session: String, to file: String, as format: ImageFormat, _ results: ResultOptions,
  _ decoders: DecoderForkServer?
) throws {
  do {
    let frame = try SessionFrame(of: session, at: instant, decoders: decoders)
    let written = try frame.write(to: file, as: format)
    let facts: [String: JSONValue] = ["file": .string(written.file), "bytes": .number(written.bytes)]
    let shown = frame.shown
    results.print(
      json: JSONValue.object(frame.members.merging(facts) { $1 }).line,
      text: "\(file): captured \(shown.frame.timeMs.dateText), on screen until "
        + "\(shown.shownMs.upperBound.dateText), \(shown.segment.width)×\(shown.segment.height) pixels, "
        + "from \(shown.segment.file)")
  } catch let nothing as NothingOnScreen {
    if results.json { answer(JSONValue.object(nothing.members).line) }
    throw nothing
  }
}
