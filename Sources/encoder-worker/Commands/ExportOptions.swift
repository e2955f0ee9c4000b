import ArgumentParser
import Encoding
import FileSystem
import Films
import Glibc
import SegmentEncoder

/// Files that a worker makes of each session that has ended.
struct ExportOptions: ParsableArguments {
  @Option(
    help: .setting(
      "Make this file of each session that has ended, in its exports/: film.mp4, film.gif, film.webp, poster.jpg, captions.vtt or pictures.jsonl. Options of stitch, or of pictures, may follow a colon. Repeatable.",
      valueName: "name[:options]", example: "film.mp4"))
  var export: [String] = []

  private enum Form: String, CaseIterable {
    case mp4, gif, webp, png, jpg, vtt, jsonl
  }

  /// Options of `stitch` and `pictures` that the export decides itself.
  private static let decided = [
    "--to", "--store", "--presign", "--format", "--map", "--captions", "--json", "--settings",
  ]

  func validate() throws { _ = try commands() }

  /// The name of a file, and the command that makes it.
  private enum Command {
    case film(String, StitchCommand)
    case captions(String, StitchCommand)
    case pictures(String, PicturesCommand)
  }

  /// - Throws: wrong usage.
  private func commands() throws -> [Command] {
    let commands = try export.map(Self.command)
    let names = export.map { $0.prefix { $0 != ":" } }
    if let twice = names.first(where: { name in names.count { $0 == name } > 1 }) {
      throw ValidationError("--export: \(twice) is there twice")
    }
    return commands
  }

  private static func command(_ text: String) throws -> Command {
    let name = String(text.prefix { $0 != ":" })
    let words = text.dropFirst(name.count + 1).split(separator: " ").map(String.init)
    let ending = name.split(separator: ".").last.map { $0.lowercased() }
    guard let form = ending.flatMap(Form.init), !name.contains("/"), !name.hasPrefix("."), name.utf8.count <= 200 else {
      throw ValidationError(
        "--export '\(name)': name a file that ends in .\(Form.allCases.map(\.rawValue).joined(separator: ", ."))")
    }
    if let other = words.first(where: { word in decided.contains { word == $0 || word.hasPrefix($0 + "=") } }) {
      throw ValidationError("--export '\(name)': \(other) does not work here")
    }
    do {
      switch form {
      case .jsonl: return .pictures(name, try PicturesCommand.parse(["session", "--to", name] + words))
      case .vtt: return .captions(name, try StitchCommand.parse(["session", "--to", "film.mp4"] + words))
      case .mp4, .gif, .webp, .png, .jpg:
        return .film(name, try StitchCommand.parse(["session", "--to", name] + words))
      }
    } catch {
      throw ValidationError("--export '\(text)': \(StitchCommand.message(for: error))")
    }
  }

  /// Returns the passes of a worker; nil without exports.
  func passes(_ decoders: DecoderForkServer?, _ shutdown: ShutdownState) throws -> ExportPasses? {
    let commands = try commands()
    guard !commands.isEmpty else { return nil }
    @Sendable func progress(_ done: Int, _ total: Int) throws {
      if !shutdown.shouldContinue() { throw Cancelled() }
    }
    let orders = try commands.map { command in
      switch command {
      case .film(let name, let stitch):
        try stitch.form.requireEncoder(for: name)
        return ExportPasses.Order(name: name) { _ = try stitch.film(of: $0, to: $1, decoders, progress: progress) }
      case .captions(let name, let stitch):
        return ExportPasses.Order(name: name) { session, target in
          let film = target + ".mp4"
          defer { unlink(film) }
          let made = try stitch.film(of: session, to: film, decoders, progress: progress)
          try Stitching.replace(target, with: made.webVTT)
        }
      case .pictures(let name, let pictures):
        return ExportPasses.Order(name: name) {
          _ = try pictures.pictures(of: $0, to: $1, isKept: true, decoders, progress: progress)
        }
      }
    }
    return ExportPasses(orders, shutdown: shutdown)
  }
}
