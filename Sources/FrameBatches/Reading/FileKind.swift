import Glibc

/// The kinds of files that people send as frames.
package enum FileKind {
  case image(ImageKind)
  case otherImage(OtherImage)
  case video(VideoFormat)
  case zip

  package init?(of file: some Collection<UInt8>) {
    if let kind = ImageKind(of: file) {
      self = .image(kind)
    } else if let other = OtherImage(of: file) {
      self = .otherImage(other)
    } else if let video = VideoFormat(of: file) {
      self = .video(video)
    } else if file.starts(with: "PK\u{3}\u{4}".utf8) {
      self = .zip
    } else {
      return nil
    }
  }

  /// Whether a path leads to an image that can be a frame.
  package static func isImage(_ path: String) -> Bool {
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return false }
    defer { close(file) }
    var prefix = [UInt8](repeating: 0, count: 16)
    let count = unsafe read(file, &prefix, prefix.count)
    return count > 0 && ImageKind(of: prefix.prefix(count)) != nil
  }

  package var described: String {
    switch self {
    case .image(let kind): "one \(kind.name) image"
    case .otherImage(let other): other.described
    case .video(let video): video.described
    case .zip: "a zip archive"
    }
  }

  /// The reason to refuse a file that begins neither like an image nor like another known kind.
  package static let unknown = "not an image of a known format"

  /// The reason to refuse the file as a frame; nil for an image that can be one.
  package var fault: String? {
    switch self {
    case .image: nil
    case .otherImage(let other): other.refusal.fault
    case .video, .zip: "\(described), not an image"
    }
  }

  /// The remedy; nil for an image that can be a frame.
  ///
  /// - Parameter name: the name of the file, for its suffix; nil if it has none that helps.
  func advice(for name: String?) -> String? {
    switch self {
    case .image: nil
    case .otherImage(let other): other.advice(for: name)
    case .video(let video): video.advice(for: name ?? "FILE")
    case .zip: "send the zip archive itself: alone, and not compressed again"
    }
  }
}
