import ArgumentParser
import Encoding
import FileSystem
import FrameBatches
import SegmentEncoder
import Sessions

/// The format of the images that `pictures` writes.
enum PictureFormat: String, ExpressibleByArgument, CaseIterable {
  case jpg, png
}

struct PicturesCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "pictures",
    abstract: "Write the pictures of a session that changed, for people and models.",
    discussion: """
      Each picture is named by its capture, 2026-01-08T08-05-12.340Z.jpg (UTC). A line of pictures.jsonl tells its instant and hold, how much of it changed and where, and the events and notes of its time.

      The change of a picture is the part of its blocks of 16×16 pixels that differ from the picture before. The first picture is always written.
      PATH is a directory to make, or a .zip of it, or a .jsonl that has the pictures in its lines (data: URIs).
      """)

  @OptionGroup var source: SessionSource

  @Option(
    help: .call(
      "The directory to make, or the .zip or .jsonl to write or replace.", valueName: "path", example: "pictures"),
    completion: .file())
  var to: String

  @Flag(help: "Leave out pictures that equal the one before.")
  var changedOnly = false

  @Option(
    help: ArgumentHelp(
      "Leave out pictures until so much of the picture has changed since the last one, in percent of its blocks.",
      valueName: "percent"))
  var minChange: Double?

  @Option(help: ArgumentHelp("Maximum number of pictures: those with the largest changes.", valueName: "n"))
  var max: Int?

  @Option(help: ArgumentHelp("Maximum number of tokens, one for 750 pixels: the same choice.", valueName: "n"))
  var maxTokens: Int?

  @Option(help: ArgumentHelp("Maximum of the longer side in pixels. (default: the pictures' size)", valueName: "n"))
  var maxSide: Int?

  @Option(help: "Format of the pictures: jpg or png.")
  var format = PictureFormat.jpg

  @OptionGroup var part: PartOptions
  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if to.isEmpty { throw ValidationError("--to is empty") }
    let others = [".mp4", ".gif", ".webp", ".png", ".jpg", ".jpeg", ".tar", ".gz", ".zst", ".json", ".html"]
    if let suffix = others.first(where: to.lowercased().hasSuffix) {
      throw ValidationError("--to '\(to)': pictures writes a directory, a .zip or a .jsonl, not \(suffix)")
    }
    if let minChange, !PictureChoice.isPercentage(minChange) {
      throw ValidationError("--min-change is more than 0 and at most 100 percent")
    }
    try require("--max", max, in: 1...1_000_000)
    try require("--max-tokens", maxTokens, in: 1...1_000_000_000)
    try require("--max-side", maxSide, in: PictureChoice.sides, "pixels")
  }

  func execute() throws {
    let decoders = try sandbox.videoDecoders()
    try ImportCommand.withSession(source.session, sandbox, decoders) { try write($0, decoders) }
  }

  private func write(_ path: String, _ decoders: DecoderForkServer?) throws {
    var choice = PictureChoice()
    (choice.changedOnly, choice.minChange) = (changedOnly, minChange)
    (choice.max, choice.maxTokens, choice.maxSide) = (max, maxTokens, maxSide)
    let (from, to) = try part.instants()
    let clip = Clip(from: from, to: to)
    let written = try withProgress(in: "pictures") {
      try SessionPictures.write(
        of: path, showing: clip, choice, to: self.to, as: format == .png ? .png : .jpeg, decoders: decoders,
        progress: $0)
    }
    for warning in written.warnings { say("\(source.session): \(warning.file): \(warning.what)") }
    results.print(json: written.json, text: Self.text(written))
  }

  private static func text(_ written: WrittenPictures) -> String {
    "\(written.file): \(written.pictures) of \(count(written.captures, "picture")), \(count(written.tokens, "token")), "
      + "\(written.bytes) bytes"
  }
}
