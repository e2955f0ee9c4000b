import FileSystem
import FrameBatches
import JSON
import SegmentEncoder

/// The dry run of `encode`: it shows batches, and encodes nothing.
struct DryRun {
  let results: ResultOptions
  /// Whether batches that lose most of their pictures are taken.
  let accepts: Bool
  let options: BatchEncoder.Options
  let partLimits: PartLimits

  /// Prints the format, the session, each frame, the gaps, and refused files of each batch.
  ///
  /// - Throws: exit status 65 if a batch would be quarantined, ``DiskError``.
  func show(_ batches: [SelectedBatch]) throws {
    var isBad = false
    var parts = PartNames()
    for batch in batches {
      do {
        if let refusal = batch.refusal { throw refusal }
        let (inspected, refused, additions) = try InspectedBatch.sessions(
          of: batch.path, files: batch.files, options, partLimits)
        for addition in additions { results.print(json: addition.json, text: Self.text(addition)) }
        for session in inspected {
          results.print(json: session.json, text: Self.text(session))
          parts.add(session.batch.name, of: session.batch.session)
        }
        for session in refused {
          let bad = session.error
          results.print(
            json: Disposition.quarantine(bad).json(batch: batch.path, bad),
            text: "\(batch.path): session \(session.session) would be refused: \(bad); \(bad.advice)".oneLine)
        }
        if !accepts {
          isBad = isBad || !refused.isEmpty
          if let loss = inspected.lazy.compactMap(\.loss).first { throw loss }
        }
      } catch let bad as BadBatch {
        isBad = true
        results.print(
          json: Disposition.quarantine(bad).json(batch: batch.path, bad),
          text: "\(batch.path): would be quarantined: \(bad); \(bad.advice)".oneLine)
      }
    }
    if let profile = options.profile { say(lines: table(profile.rows)) }
    if let hint = parts.hint { say(hint) }
    if isBad { throw ExitStatus.badBatch }
  }

  private static func text(_ inspected: InspectedBatch) -> String {
    let batch = inspected.batch
    let gaps = inspected.frames.count { $0.gapAfterMs > 0 }
    var lines = [
      "\(batch.name): \(inspected.format), session \(batch.session), \(count(inspected.frames.count, "frame")), "
        + "\(duration(ms: inspected.endMs - inspected.startMs)), \(count(inspected.segments, "segment")), "
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
    if !batch.labels.isEmpty { lines.append("  \(count(batch.labels.count, "label"))") }
    lines += inspected.warnings.map { "  warning: \($0)" }
    return lines.map(\.oneLine).joined(separator: "\n")
  }

  private static func text(_ addition: LabelAddition) -> String {
    let (labels, warnings) = addition.labels
    let lines =
      [
        "\(addition.name): labels, session \(addition.session), \(count(labels.count, "label")), would be added to what is published"
      ] + labels.map { "  \($0.timeMs.dateText)   \($0.kind)  \($0.text.shortened(to: 200))" }
      + warnings.map { "  warning: \($0)" }
    return lines.map(\.oneLine).joined(separator: "\n")
  }
}

extension LabelAddition {
  /// Those of a batch, which have times of their own.
  fileprivate var labels: (labels: [Label], warnings: [String]) { labels(from: 0) }

  fileprivate var json: String {
    let (labels, warnings) = labels
    return JSONValue.object([
      "batch": .string(name), "format": .string("labels"), "session": .string(session.description),
      "labels": .number(labels.count), "startMs": .number(times?.lowerBound ?? 0),
      "endMs": .number(times?.upperBound ?? 0), "warnings": .array(warnings.map { .string($0) }),
    ]).line
  }
}
