import ArgumentParser
import Encoding
import FileSystem
import SegmentEncoder
import Sessions

struct SheetCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "sheet",
    abstract: "Draw a contact sheet of a session.",
    discussion: """
      Each picture has its capture time (UTC) and the time since the session's start. A gap is a hatched tile. A damaged or missing segment has a tile that says so, and the exit status is 65.
      """)

  @OptionGroup var source: SessionSource

  @Option(help: .call("The image to write or replace: a .png or a .jpg.", valueName: "file", example: "sheet.png"))
  var to: String

  @Option(help: ArgumentHelp("Show every N-th capture. (default: some 60 captures in all)", valueName: "n"))
  var every: Int?

  @Option(help: .setting("Tiles in a row.", default: "fits a screen", valueName: "n"))
  var columns: Int?

  @Option(help: .setting("Maximum width of a picture in pixels, 72 to 4096.", valueName: "pixels"))
  var width = 200

  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  private var format: ImageFormat? { ImageFormat(ofName: to) }

  func validate() throws {
    if format == nil { throw ValidationError("--to '\(to)': name a file that ends in .png or .jpg") }
    if let every, every < 1 { throw ValidationError("--every is 1 or more") }
    try require("--columns", columns, in: 1...1_000)
    try require("--width", width, in: 72...4_096, "pixels")
  }

  func execute() throws {
    let decoders = try sandbox.videoDecoders()
    try ImportCommand.withSession(source.session, sandbox, decoders) { try draw($0, decoders) }
  }

  private func draw(_ path: String, _ decoders: DecoderForkServer?) throws {
    guard let format else { return }
    let sheet = try withProgress(in: "tiles") {
      try ContactSheet.write(
        of: path, to: to, as: format, every: every, columns: columns, width: width, decoders: decoders, progress: $0)
    }
    for problem in sheet.warnings + sheet.damaged { say("\(source.session): \(problem.file): \(problem.what)") }
    results.print(json: sheet.json, text: Self.text(sheet))
    if !sheet.damaged.isEmpty { throw ExitStatus.badBatch }
  }

  private static func text(_ sheet: ContactSheet) -> String {
    "\(sheet.file): \(sheet.pictures) of \(count(sheet.captures, "capture")), \(count(sheet.gaps, "gap")), "
      + (sheet.refused > 0 ? "\(sheet.refused) refused, " : "")
      + "\(sheet.width)×\(sheet.height) pixels, \(sheet.bytes) bytes"
  }
}
