// Explains why a path is no batch: names the first file at fault, its kind, and the remedy.

import FileSystem

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
      return bad(
        "the file is \(kind.described)", kind.advice(for: name) ?? "put it into a directory, named <unix ms>.jpg")
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
    // Other files may lie beside the images.
    let image = contents.topNames.sorted().prefix(maximumProbes).lazy.compactMap { name in
      Self.kind(of: name, in: contents, limits).map { (name: name, kind: $0) }
    }.first
    let shown = "'\(lastComponent(of: image?.name ?? first).shortened(to: 80))'"
    guard let (name, kind) = image else { return bad("\(shown) is no image", advice) }
    if let advice = kind.advice(for: name) {
      let suffix = name.split(separator: ".").last.map { "." + $0.lowercased() } ?? ""
      let count = contents.topNames.count { $0.lowercased().hasSuffix(suffix) }
      let others = count > 1 ? " (\(count) files end in \(suffix))" : ""
      return bad("\(shown) is \(kind.described)\(others)", advice)
    }
    let (fault, advice) = fault(ofName: lastComponent(of: name))
    return bad("\(shown) \(fault)", advice)
  }

  /// Maximum number of files that are read in search of an image.
  private static let maximumProbes = 64

  private static func kind(of name: String, in contents: any BatchContents, _ limits: Limits) -> FileKind? {
    guard case .bytes(let bytes)? = try? contents.contents(of: name, limit: limits.fileBytes) else { return nil }
    return FileKind(of: bytes)
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
