extension BatchContents {
  /// Bytes of a file in which its header is: EXIF and profiles of up to 64 KiB each may precede the size.
  private var headerBytes: Int { 256 << 10 }
  /// Bytes of a TIFF of which the size is read; a larger one counts as unreadable.
  private var tiffBytes: Int { 16 << 20 }

  /// Returns the size of a picture by its header; nil for a file without a readable size.
  func pictureSize(of path: String) throws -> PixelSize? {
    let start = try start(of: path, count: headerBytes) ?? []
    let kind = ImageKind(of: start)
    // Most programs write the directory of a TIFF last.
    let isCut = kind == .tiff && start.count == headerBytes
    return kind?.size(of: try isCut ? self.start(of: path, count: tiffBytes) ?? [] : start)
  }
}
