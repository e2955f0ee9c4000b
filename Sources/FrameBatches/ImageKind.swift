/// Image formats, told apart by their first bytes.
package enum ImageKind: Hashable {
  case jpeg, png, webp

  package var name: String {
    switch self {
    case .jpeg: "JPEG"
    case .png: "PNG"
    case .webp: "WebP"
    }
  }

  /// Whether these bytes begin like an image.
  static func isImage(_ prefix: some Collection<UInt8>) -> Bool { ImageKind(of: prefix) != nil }

  package init?(of file: some Collection<UInt8>) {
    if file.starts(with: [0xFF, 0xD8, 0xFF]) {
      self = .jpeg
    } else if file.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
      self = .png
    } else if file.starts(with: "RIFF".utf8), file.dropFirst(8).starts(with: "WEBP".utf8) {
      self = .webp
    } else {
      return nil
    }
  }
}
