import ArgumentParser
import Encoding
import FileSystem
import SegmentEncoder
import Sessions
import Showing

/// The options of a contact sheet.
struct SheetOptions: ParsableArguments {
  @Flag(help: "Draw a contact sheet into one image: the captures of the session with their instants.")
  var sheet = false

  @Option(
    help: ArgumentHelp("With --sheet: show every N-th capture. (default: some 60 captures in all)", valueName: "n"))
  var every: Int?

  @Option(help: .setting("With --sheet: tiles in a row.", default: "fits a screen", valueName: "n"))
  var columns: Int?

  @Option(help: .setting("With --sheet: maximum width of a picture in pixels, 72 to 4096.", valueName: "pixels"))
  var width = 200

  func validate() throws {
    if let every, every < 1 { throw ValidationError("--every is 1 or more") }
    try require("--columns", columns, in: 1...1_000)
    try require("--width", width, in: 72...4_096, "pixels")
    if !sheet { try CallOptions.refuse("--every", "--columns", "--width", without: "--sheet") }
  }

  /// Draws the sheet.
  ///
  /// - Parameters:
  ///   - path: of the published session.
  ///   - source: the session as the call names it.
  /// - Throws: exit status 65 if segments are damaged.
  func draw(
    _ path: String, of source: String, to file: String, as format: ImageFormat, _ results: ResultOptions,
    _ decoders: DecoderForkServer?
  ) throws {
    let sheet = try withProgress(in: "tiles") {
      try ContactSheet.write(
        of: path, to: file, as: format, every: every, columns: columns, width: width, decoders: decoders, progress: $0)
    }
    for problem in sheet.warnings + sheet.damaged { say("\(source): \(problem.file): \(problem.what)") }
    results.print(json: sheet.json, text: Self.text(sheet, at: file))
    if !sheet.damaged.isEmpty { throw ExitStatus.badBatch }
  }

  private static func text(_ sheet: ContactSheet, at path: String) -> String {
    "\(path): \(sheet.pictures) of \(count(sheet.captures, "capture")), \(count(sheet.gaps, "gap")), "
      + (sheet.refused > 0 ? "\(sheet.refused) refused, " : "")
      + "\(sheet.width)×\(sheet.height) pixels, \(size(sheet.bytes))"
  }
}
