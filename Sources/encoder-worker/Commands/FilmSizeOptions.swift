import ArgumentParser
import Encoding
import FileSystem
import Films
import Sessions

/// The size of a film's pictures; the same for every command that makes a film.
struct FilmSizeOptions: ParsableArguments {
  static let sideHelp = "Maximum of the longer side in pixels."

  @Option(
    help: ArgumentHelp(
      Self.sideHelp + " (default: 480 for GIF and WebP, else the pictures' size)", valueName: "n"))
  var maxSide: Int?

  /// - Throws: wrong usage.
  func validate(for form: FilmForm) throws {
    if case .animation = form {
      try require("--max-side", maxSide, in: AnimationFormat.sides, "pixels for GIF and WebP")
    } else {
      try require("--max-side", maxSide, in: 16...8_192, "pixels")
    }
  }

  /// - Throws: wrong usage if a path is that of another kind of film.
  static func requireFilm(_ to: String, _ command: String) throws {
    let others = [".mkv", ".webm", ".avi", ".mov", ".ts", ".wmv", ".flv", ".apng", ".avif", ".bmp", ".tif", ".tiff"]
    if let suffix = others.first(where: to.lowercased().hasSuffix) {
      throw ValidationError(
        "--to '\(to)': \(command) writes MP4, GIF, WebP, PNG and JPEG, not \(suffix.dropFirst()); name a file that ends in .mp4"
      )
    }
  }
}

extension FilmForm {
  /// The units of progress.
  var unit: String { self == .mp4 ? "segments" : "pictures" }
}

extension StitchedSession {
  /// The last line of a command that makes a film.
  ///
  /// - Parameter path: of the film, as the call has it: the path without links is another one once the file exists.
  func text(of form: FilmForm, at path: String) -> String {
    let side = size.map { "\($0.width)×\($0.height)" } ?? ""
    let (length, bytes) = (duration(ms: durationMs), encoder_worker.size(bytes))
    return switch form {
    case .mp4: "\(path): \(length), \(count(segments, "segment")), \(bytes)"
    case .animation: "\(path): \(length), \(count(pictures ?? 0, "picture")) of \(side), \(bytes)"
    case .poster: "\(path): \(side) pixels, \(bytes)"
    }
  }
}
