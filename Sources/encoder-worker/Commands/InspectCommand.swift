import ArgumentParser
import Encoding
import FrameBatches
import ISOMedia
import SegmentEncoder
import WorkQueues

struct InspectCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Show batches: format, session, frames, gaps, refused files.",
    discussion: """
      Prints the format, the session, each frame with time, hold and size, the gaps, and refused files with the reason. Encodes nothing. Exit status 65 if a batch would be quarantined.
      """)

  @Argument(
    help: ArgumentHelp(
      "Batches: directories, archives, or the images of one batch; - reads an archive from standard input.",
      valueName: "batch"),
    completion: .file())
  var batches: [String]

  @OptionGroup
  var naming: NamingOptions

  @Flag(help: "Print results as JSON, one object a line.")
  var json = false

  @OptionGroup
  var settings: SettingsOption

  @OptionGroup(title: "Encoding")
  var encoding: EncodingOptions

  func run() throws {
    var isBad = false
    var options = BatchEncoder.Options()
    try reportingFailures { options = try encoding.encoder() }
    for choice in BatchSelection.batches(batches) {
      let batch = choice.path
      try reportingFailures {
        do {
          let (found, refused) = try InspectedBatch.sessions(
            of: batch, files: choice.files, options: InputOptions(session: naming.session), options)
          for session in found { answer(json ? session.json : Self.text(session)) }
          for session in refused {
            let text =
              "\(batch): session \(session.session) would be refused: \(session.error); \(session.error.advice)"
            answer(json ? Disposition.quarantine(session.error).json(batch: batch, session.error) : text.oneLine)
          }
        } catch let bad as BadBatch {
          isBad = true
          let text = "\(batch): would be quarantined: \(bad); \(bad.advice)".oneLine
          answer(json ? Disposition.quarantine(bad).json(batch: batch, bad) : text)
        }
      }
    }
    if let profile = options.profile { say(lines: table(profile.rows)) }
    if isBad { throw ExitStatus.badBatch }
  }

  private static func text(_ found: InspectedBatch) -> String {
    func right(_ text: String, _ width: Int) -> String {
      String(repeating: " ", count: max(0, width - text.count)) + text
    }
    let gaps = found.frames.count { $0.gapAfterMs > 0 }
    var lines = [
      "\(found.batch): \(found.format), session \(found.session), \(count(found.frames.count, "frame")), "
        + "\(found.endMs - found.startMs) ms, \(count(found.segments, "segment")), \(count(gaps, "gap")), "
        + "\(found.refused.count) refused",
      "  captured                   " + right("hold ms", 9) + right("size", 12) + "  source",
    ]
    for frame in found.frames {
      lines.append(
        "  \(frame.timeMs.dateText)   " + right("\(frame.holdMs)", 9) + right("\(frame.width)x\(frame.height)", 12)
          + "  \(frame.source)" + (frame.note.map { " (\($0))" } ?? ""))
      if frame.gapAfterMs > 0 { lines.append("  gap                        " + right("\(frame.gapAfterMs)", 9)) }
    }
    lines += found.refused.map { "  refused \($0.source): \($0.reason)" } + found.warnings.map { "  warning: \($0)" }
    return lines.map(\.oneLine).joined(separator: "\n")
  }
}
