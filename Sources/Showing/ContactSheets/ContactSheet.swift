// A contact sheet of a session: its captures with their times, and its gaps. Damaged segments are shown and reported as damaged.

import Encoding
import FileSystem
import Films
import FrameBatches
import JSON
import Sessions

/// The result of drawing a sheet.
package struct ContactSheet: Sendable, Equatable {
  package let file: String
  package let session: String
  package let durationMs: Int64
  package let captures: Int
  /// The number of captures on the sheet.
  package let pictures: Int
  package let every: Int
  package let gaps: Int
  /// Frames that could not be decoded when the session was encoded.
  package let refused: Int
  package let width: Int
  package let height: Int
  package let bytes: Int
  /// Segments that differ from their manifests.
  package let damaged: [Problem]
  /// Missing parts of the session.
  package let warnings: [Problem]

  /// One line of JSON.
  package var json: String {
    JSONValue.object([
      "file": .string(file), "session": .string(session), "durationMs": .number(durationMs),
      "captures": .number(captures), "pictures": .number(pictures), "every": .number(every), "gaps": .number(gaps),
      "refused": .number(refused), "width": .number(width), "height": .number(height), "bytes": .number(bytes),
      "damaged": .array(damaged.map(\.json)), "warnings": .array(warnings.map(\.json)),
    ]).line
  }

  /// Draws a session's sheet. A file at `target` is replaced atomically.
  ///
  /// - Parameters:
  ///   - path: a published session, `OUTPUT/SESSION`.
  ///   - every: shows every n-th capture; nil for some sixty captures in all.
  ///   - columns: the number of tiles in a row; nil for a sheet with the proportions of a screen.
  ///   - width: the maximum width of a picture, in pixels.
  ///   - decoders: the processes that decode segments; nil to decode trusted segments in this process.
  ///   - progress: called with the number of tiles done and of all; an error that it throws ends the work.
  /// - Throws: ``BadSession`` when no segment can be read, ``BadTarget`` when the sheet would be too large, ``DiskError``.
  package static func write(
    of path: String, to target: String, as format: ImageFormat, every: Int?, columns: Int?, width: Int,
    decoders: DecoderForkServer?, progress: (Int, Int) throws -> Void
  ) throws -> ContactSheet {
    let session = try SheetSession(at: path, decoders: decoders)
    let target = try Stitching.file(target)
    let plan = ContactSheetPlan(session.pieces, every: every)
    let layout = SheetLayout(
      tiles: plan.tiles.count, pictures: plan.pictureSizes, width: width, columns: columns,
      header: plan.header(of: session))
    if let reason = layout.whyTooLarge {
      throw BadTarget(path: target, cause: reason, advice: "a higher --every or a lower --width makes it smaller")
    }
    var drawing = try SheetDrawing(plan, layout, from: session.directory)
    try drawing.draw(progress)
    let bytes = format == .png ? try drawing.canvas.png() : try drawing.canvas.jpeg()
    try DurableFile.replace(target, bytes, temporary: "\(target).part")
    try Directory(opening: DurableFile.parentDirectory(of: target)).sync()
    return ContactSheet(
      file: target, session: session.directory.session.description, durationMs: plan.endMs - plan.startMs,
      captures: plan.captures, pictures: plan.pictureSizes.count, every: plan.every, gaps: plan.gaps.count,
      refused: session.refused, width: layout.width, height: layout.height, bytes: bytes.count,
      damaged: session.lost + drawing.damaged,
      warnings: SessionOrder.missingParts(
        of: session.pieces.compactMap(\.segment), isCut: try session.directory.retention() != nil))
  }
}

extension ContactSheet {
  /// Returns the starts of the segments whose videos a sheet shows.
  ///
  /// Parameters and errors as of ``write(of:to:as:every:columns:width:decoders:progress:)``.
  package static func videos(of path: String, to target: String, every: Int?) throws -> Set<Int64> {
    _ = try Stitching.file(target)
    return Set(
      ContactSheetPlan(try SheetSession(at: path).pieces, every: every).tiles.compactMap(\.picture?.segment.startMs))
  }
}

extension ContactSheetPlan {
  /// The sizes of the pictures on the sheet, as captured.
  var pictureSizes: [PixelSize] {
    tiles.compactMap(\.picture?.segment).map { PixelSize(width: $0.width, height: $0.height) }
  }

  /// Returns the heading above the tiles.
  func header(of session: SheetSession) -> [String] {
    let times = "\(SheetText.instant(startMs)) to \(SheetText.instant(endMs)) UTC, \(SheetText.span(endMs - startMs))"
    var facts = [count(captures, "capture")]
    if every > 1 { facts[0] += ", 1 of \(every) shown" }
    let gapMs = gaps.reduce(0) { $0 + $1.lengthMs }
    facts.append(SheetText.gaps(gaps.count, gapMs))
    if session.refused > 0 { facts.append(count(session.refused, "refused frame")) }
    if !session.lost.isEmpty { facts.append("\(count(session.lost.count, "segment")) lost") }
    return ["session \(session.directory.session)", times, facts.joined(separator: "; ")]
  }
}
