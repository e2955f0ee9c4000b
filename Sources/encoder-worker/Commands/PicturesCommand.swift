import ArgumentParser
import Encoding
import FileSystem
import Films
import FrameBatches
import Reencoding
import SegmentEncoder
import Sessions
import Showing

/// The format of the images that `pictures` writes.
enum PictureFormat: String, ExpressibleByArgument, CaseIterable {
  case jpg, png
}

struct PicturesCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "pictures",
    abstract: "Write pictures of a session, one of them, or a sheet.",
    discussion: """
      Each picture is named by its capture, 2026-01-08T08-05-12.340Z.jpg (UTC). A line of pictures.jsonl tells its instant and hold, how much of it changed and where, and the events and notes of its time.

      The change of a picture is the part of its blocks of 16×16 pixels that differ from the picture before. The first picture is always written.
      With --store the session is an ID: the objects that are needed are copied below TMPDIR for the time of the call.

      PATH is a directory to make, or a .zip of it, or a .jsonl that has the pictures in its lines (data: URIs).

      --at T: one image, of the size of the capture. One segment is read, and decoded up to the picture. In a gap, and outside of the session, the bounds are reported, and the exit status is 65. A picture is on screen from its capture until just before the next one.
      --sheet: one image of the session. Each picture has its capture time (UTC) and the time since the session's start. A gap is a hatched tile. A damaged or missing segment has a tile that says so, and the exit status is 65.
      """)

  static let page = HelpPage(
    example: "pictures sessions/9f0c --to pictures", required: [["to"]],
    common: ["at", "sheet", "changed-only", "from", "to-time", "max", "max-side", "image-format", "json"])

  @OptionGroup var source: SessionSource

  @Option(
    help: .call(
      "The directory to make, or the .zip or .jsonl to write or replace; with --at or --sheet, the .png or .jpg.",
      valueName: "path", example: "pictures"),
    completion: .file())
  var to: String

  @OptionGroup var single: InstantOption
  @OptionGroup var sheet: SheetOptions

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

  @Option(help: ArgumentHelp(FilmSizeOptions.sideHelp + " (default: the pictures' size)", valueName: "n"))
  var maxSide: Int?

  @Option(help: "Format of the pictures: jpg or png. (default: jpg)")
  var imageFormat: PictureFormat?

  @OptionGroup var part: PartOptions
  @OptionGroup var results: ResultOptions
  @OptionGroup var sandbox: SandboxOptions
  @OptionGroup var settings: SettingsOption

  func validate() throws {
    if let minChange, !PictureChoice.isPercentage(minChange) {
      throw ValidationError("--min-change is more than 0 and at most 100 percent")
    }
    try require("--max", max, in: 1...1_000_000)
    try require("--max-tokens", maxTokens, in: 1...1_000_000_000)
    try require("--max-side", maxSide, in: PictureChoice.sides, "pixels")
    let isImage = single.at != nil || sheet.sheet
    try requireName("--to", to, such: isImage ? "picture.png" : "pictures")
    if isImage { return try validateImage() }
    let others = [".mp4", ".gif", ".webp", ".png", ".jpg", ".jpeg", ".tar", ".gz", ".zst", ".json", ".html"]
    if let suffix = others.first(where: to.lowercased().hasSuffix) {
      let image = ImageFormat(ofName: to) == nil ? "" : "; for one image, add --at T or --sheet"
      throw ValidationError("--to '\(to)': pictures writes a directory, a .zip or a .jsonl, not \(suffix)\(image)")
    }
  }

  /// Checks the options of a call that writes one image.
  private func validateImage() throws {
    if single.at != nil, sheet.sheet { throw ValidationError("--at or --sheet: one of them") }
    let mode = sheet.sheet ? "--sheet" : "--at"
    let others = [
      "--changed-only": changedOnly, "--min-change": minChange != nil, "--max": max != nil,
      "--max-tokens": maxTokens != nil, "--max-side": maxSide != nil, "--image-format": imageFormat != nil,
      "--from": part.from != nil, "--to-time": part.toTime != nil, "--duration": part.duration != nil,
    ]
    if let other = others.filter(\.value).keys.min() { throw ValidationError("\(other) does not work with \(mode)") }
    if ImageFormat(ofName: to) == nil { throw ValidationError("--to '\(to)': name a file that ends in .png or .jpg") }
  }

  func execute() throws {
    let decoders = try sandbox.videoDecoders()
    try source.withSession(sandbox, decoders, takesSegments: single.at == nil, needing: needs()) { path in
      if let instant = single.instant, let image = ImageFormat(ofName: to) {
        try writePicture(at: instant, of: path, to: to, as: image, results, decoders)
      } else if sheet.sheet, let image = ImageFormat(ofName: to) {
        try sheet.draw(path, of: source.session, to: to, as: image, results, decoders)
      } else {
        try write(path, decoders)
      }
    }
  }

  /// Returns the objects of a stored session that the call reads.
  private func needs() throws -> StoredNeeds {
    if let instant = single.instant {
      return StoredNeeds(part: .between(instant, instant.after(ms: 1))) {
        // Without a picture there the command says so.
        (try? SessionFrame(of: $0, at: instant)).map { [$0.shown.segment.startMs] } ?? []
      }
    }
    if sheet.sheet {
      return StoredNeeds(keepsDamage: true) { try ContactSheet.videos(of: $0, to: to, every: sheet.every) }
    }
    let (from, until) = try part.instants()
    return StoredNeeds(part: try part.stored) { try Clip(from: from, to: until).segments(of: $0) }
  }

  private func write(_ path: String, _ decoders: DecoderForkServer?) throws {
    let written = try withProgress(in: "pictures") { try pictures(of: path, to: to, decoders, progress: $0) }
    for warning in written.warnings { say("\(source.session): \(warning.file): \(warning.what)") }
    results.print(json: written.json, text: Self.text(written, at: self.to))
  }

  /// Writes the pictures of a session's directory.
  ///
  /// - Parameter isKept: whether the target goes where `delete` finds it.
  func pictures(
    of path: String, to target: String, isKept: Bool = false, _ decoders: DecoderForkServer?,
    progress: (Int, Int) throws -> Void
  ) throws -> WrittenPictures {
    var choice = PictureChoice()
    (choice.changedOnly, choice.minChange) = (changedOnly, minChange)
    (choice.max, choice.maxTokens, choice.maxSide) = (max, maxTokens, maxSide)
    let (from, to) = try part.instants()
    let clip = Clip(from: from, to: to)
    return try SessionPictures.write(
      of: path, showing: clip, choice, to: target, as: imageFormat == .png ? .png : .jpeg, isKept: isKept,
      decoders: decoders, progress: progress)
  }

  private static func text(_ written: WrittenPictures, at path: String) -> String {
    "\(path): \(written.pictures) of \(count(written.captures, "picture")), \(count(written.tokens, "token")), "
      + size(written.bytes)
  }
}
