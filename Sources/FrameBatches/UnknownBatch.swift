// Explains why a path is no batch: names the first file at fault, its kind, and the remedy.

import FileSystem
import Glibc

enum UnknownBatch {
  static let advice = "send frames named <unix ms>.jpg or .png, frames and a batch.json, or a recorder's batch"
  private static let renaming = "rename each frame <unix ms>.jpg, or list the frames and their times in a batch.json"

  /// Returns the cause and the advice for a batch that no format recognises.
  ///
  /// - Parameter name: the batch's name in messages.
  static func explain(_ contents: any BatchContents, name: String, limits: Limits) -> BadBatch {
    func bad(_ cause: String, _ advice: String) -> BadBatch {
      BadBatch("read", name, cause.isEmpty ? "no known format" : "no known format: \(cause)", advice: advice)
    }
    if contents.text != nil {
      return bad("JSON, but no recording that is known", "see docs/input-formats.md for the JSON of recorders")
    }
    if let stream = contents.stream {
      guard let kind = FileKind(of: stream) else { return bad("neither frames nor an archive of frames", advice) }
      return bad("the file is \(kind.described)", kind.advice ?? "put it into a directory, named <unix ms>.jpg")
    }
    if let first = contents.refused.first {
      return BadBatch("read", name, "no frames; \(first.source) is \(first.reason)", advice: advice)
    }
    guard let first = contents.topNames.sorted().first else {
      let folders = Set(contents.names.compactMap { $0.split(separator: "/").first }).sorted()
      guard let folder = folders.first else { return BadBatch("read", name, "nothing in it", advice: advice) }
      return bad(
        "all its files lie in folders, the first in '\(folder.prefix(80))'",
        "if each folder is a batch, run: encoder-worker encode --batches DIR --output DIR")
    }
    let shown = "'\(lastComponent(of: first).shortened(to: 80))'"
    guard case .bytes(let bytes)? = try? contents.contents(of: first, limit: limits.fileBytes),
      let kind = FileKind(of: bytes)
    else { return bad("\(shown) is no image", advice) }
    if let advice = kind.advice { return bad("\(shown) is \(kind.described)", advice) }
    let (fault, advice) = fault(ofName: lastComponent(of: first))
    return bad("\(shown) \(fault)", advice)
  }

  /// Returns the reason why the name of an image contains no capture time, and the remedy.
  private static func fault(ofName name: String) -> (cause: String, advice: String) {
    let digits = name.split { !$0.isASCII || !$0.isNumber }.map(String.init)
    let year = digits.firstIndex {
      $0.count == 4 && ("2001"..."2099").contains($0) || $0.count == 8 && $0.hasPrefix("20")
    }
    if year != nil {
      let pattern = NamePattern.describing(name) ?? "%Y-%m-%d %H.%M.%S"
      return (
        "has a date in its name, not its capture time in unix milliseconds",
        "describe the names to encode or enqueue, for example --name-time '\(pattern)' --time-zone Europe/Berlin"
      )
    }
    if digits.isEmpty {
      return ("has no capture time in its name", renaming + "; or use the times of the files with --times mtime")
    }
    return (
      "has a number in its name that is not its capture time in unix milliseconds",
      "for numbered frames give encode or enqueue --start T --fps R, for example --start 2026-01-08T08:05:12Z --fps 1; else \(renaming)"
    )
  }
}

/// The kinds of files that people send in place of JPEG, PNG and WebP frames.
package enum FileKind {
  case image(ImageKind)
  case otherImage(String)
  case video
  case zip

  package init?(of file: some Collection<UInt8>) {
    func has(_ text: String, at offset: Int = 0) -> Bool { file.dropFirst(offset).starts(with: text.utf8) }
    if let kind = ImageKind(of: file) {
      self = .image(kind)
    } else if has("ftyp", at: 4) {
      let brand = String(decoding: file.dropFirst(8).prefix(4), as: UTF8.self)
      switch brand {
      case "heic", "heix", "mif1", "msf1", "hevc", "heim", "heis": self = .otherImage("HEIC")
      case "avif", "avis": self = .otherImage("AVIF")
      default: self = .video
      }
    } else if has("BM") {
      self = .otherImage("BMP")
    } else if has("GIF8") {
      self = .otherImage("GIF")
    } else if has("II*\0") || has("MM\0*") {
      self = .otherImage("TIFF")
    } else if has("PK\u{3}\u{4}") {
      self = .zip
    } else {
      return nil
    }
  }

  /// Whether a path leads to a JPEG, PNG or WebP image.
  package static func isImage(_ path: String) -> Bool {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return false }
    defer { close(file) }
    var prefix = [UInt8](repeating: 0, count: 16)
    let count = read(file, &prefix, prefix.count)
    return count > 0 && ImageKind(of: prefix.prefix(count)) != nil
  }

  package var described: String {
    switch self {
    case .image(let kind): "one \(kind.name) image"
    case .otherImage(let name): "a \(name) image"
    case .video: "an MP4 video"
    case .zip: "a zip archive"
    }
  }

  /// The remedy; nil for an image that can be a frame.
  var advice: String? {
    switch self {
    case .image: nil
    case .otherImage: "convert the frames to JPEG, PNG or WebP"
    case .video: "run: encoder-worker reencode FILE.mp4 --output DIR --quality balanced"
    case .zip: "send the zip archive itself: alone, and not compressed again"
    }
  }
}
