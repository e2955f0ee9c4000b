import ArgumentParser
import FileSystem
import FrameBatches
import ISOMedia
import SegmentEncoder

struct InspectCommand: ReportingCommand {
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

  @OptionGroup var input: InputArguments
  @OptionGroup var results: ResultOptions
  @OptionGroup var settings: SettingsOption
  @OptionGroup(title: "Encoding") var encoding: EncodingOptions

  func execute() throws {
    var isBad = false
    var options = try encoding.encoder(input.options())
    options.limits.splitsFolders = true
    options.limits.followsLinks = true
    for batch in BatchSelection.batches(batches) {
      do {
        let (inspected, refused) = try InspectedBatch.sessions(
          of: batch.path, files: batch.files, options, encoding.partLimits(options))
        for session in inspected {
          results.print(json: session.json, text: Self.text(session))
        }
        for session in refused {
          let bad = session.error
          results.print(
            json: Disposition.quarantine(bad).json(batch: batch.path, bad),
            text: "\(batch.path): session \(session.session) would be refused: \(bad); \(bad.advice)".oneLine)
        }
        isBad = isBad || !refused.isEmpty
        if let loss = inspected.lazy.compactMap(\.loss).first { throw loss }
      } catch let bad as BadBatch {
        isBad = true
        results.print(
          json: Disposition.quarantine(bad).json(batch: batch.path, bad),
          text: "\(batch.path): would be quarantined: \(bad); \(bad.advice)".oneLine)
      }
    }
    if let profile = options.profile { say(lines: table(profile.rows)) }
    if isBad { throw ExitStatus.badBatch }
  }

  private static func text(_ inspected: InspectedBatch) -> String {
    let batch = inspected.batch
    let gaps = inspected.frames.count { $0.gapAfterMs > 0 }
    var lines = [
      "\(batch.name): \(inspected.format), session \(batch.session), \(count(inspected.frames.count, "frame")), "
        + "\(inspected.endMs - inspected.startMs) ms, \(count(inspected.segments, "segment")), "
        + "\(count(gaps, "gap")), \(inspected.refused.count) refused",
      "  captured                   " + "hold ms".rightAligned(9) + "size".rightAligned(12) + "  source",
    ]
    for frame in inspected.frames {
      lines.append(
        "  \(frame.capture.timeMs.dateText)   " + "\(frame.holdMs)".rightAligned(9)
          + "\(frame.capture.width)x\(frame.capture.height)".rightAligned(12) + "  \(frame.capture.source)"
          + (frame.note.map { " (\($0))" } ?? ""))
      if frame.gapAfterMs > 0 { lines.append("  gap                        " + "\(frame.gapAfterMs)".rightAligned(9)) }
    }
    lines += inspected.refused.map { "  refused \($0.source): \($0.reason)" }
    let pointers = batch.pointers.events.count
    if pointers > 0 { lines.append("  \(count(pointers, "pointer event"))") }
    lines += inspected.warnings.map { "  warning: \($0)" }
    return lines.map(\.oneLine).joined(separator: "\n")
  }
}
