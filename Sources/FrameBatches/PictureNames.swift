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

  /// Whether a file is a picture by its suffix.
  package static func isPicture(_ path: String) -> Bool { pictures.contains(NamedTimesFormat.parts(of: path).suffix) }

  /// Whether a file can be a picture by its suffix: its content decides.
  static func canBePicture(_ path: String) -> Bool { !others.contains(NamedTimesFormat.parts(of: path).suffix) }

  /// Whether a form that reads `count` of the names reads at least half of those that are pictures.
  static func areMostly(_ count: Int, of names: [String]) -> Bool {
    count > 0 && (count == names.count || 2 * count >= names.count(where: isPicture))
  }
}
