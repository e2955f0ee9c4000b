import FileSystem

/// The suffixes of files in a batch.
package enum PictureNames {
  /// Suffixes of pictures, also of those that have to be converted.
  private static let pictures: Set<String> = [
    "avif", "bmp", "gif", "heic", "heif", "jp2", "jpeg", "jpg", "jxl", "png", "ppm", "tif", "tiff", "webp",
  ]
  /// Suffixes of files that lie beside frames and are no frames.
  private static let others: Set<String> = [
    "csv", "db", "htm", "html", "ini", "json", "jsonl", "log", "md", "txt", "xml", "yaml", "yml",
  ]

  /// Links to pictures that are a sequence in a folder. Fewer may lead to the latest picture.
  package static let fewestLinks = 3

  /// Whether a file is a picture by its suffix.
  package static func isPicture(_ path: String) -> Bool { pictures.contains(parts(of: path).suffix) }

  /// Whether a file is an MP4 or a MOV by its suffix.
  static func isVideo(_ path: String) -> Bool {
    let end = path.utf8.suffix(4)
    guard end.count == 4, end.first == UInt8(ascii: ".") else { return false }
    return [".mp4", ".m4v", ".mov"].contains(String(Substring(end)).lowercased())
  }

  /// Whether a file can be a picture by its suffix: its content decides.
  static func canBePicture(_ path: String) -> Bool { !others.contains(parts(of: path).suffix) }

  /// Whether a form that reads `count` of the names reads at least half of those that are pictures.
  static func areMostly(_ count: Int, of names: [String]) -> Bool {
    count > 0 && (count == names.count || 2 * count >= names.count(where: isPicture))
  }

  /// Returns a path without the suffix of its file.
  static func stem(of path: String) -> Substring {
    let suffix = parts(of: path).suffix
    return suffix.isEmpty ? path[...] : path.dropLast(suffix.count + 1)
  }

  /// Returns a file's name without its suffix, and the suffix in lower case. Digits behind a point are no suffix.
  static func parts(of path: String) -> (stem: Substring, suffix: String) {
    let name = lastComponent(of: path)
    guard let last = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return (name[...], "") }
    let bytes = name.utf8[last...].dropFirst()
    if bytes.allSatisfy({ $0 < 0x80 }) {
      let isSuffix =
        (1...5).contains(bytes.count) && bytes.first.map(isLetter) == true
        && bytes.allSatisfy { isLetter($0) || $0.isDigit }
      return isSuffix ? (name[..<last], Substring(bytes).lowercased()) : (name[...], "")
    }
    guard let point = name.lastIndex(of: "."), case let suffix = name[point...].dropFirst(),
      (1...5).contains(suffix.utf8.count), suffix.first?.isLetter == true,
      suffix.allSatisfy({ $0.isLetter || $0.isNumber })
    else { return (name[...], "") }
    return (name[..<point], suffix.lowercased())
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (97...122).contains(byte | 0x20) }
}
