import Foundation

/// Bytes of pictures, to find out where copies of them are: in frames, archives of them, videos and fragments. Many fixtures share
/// pictures; those of `colour-bars` are its own.
public struct PictureBytes: Sendable {
  /// Bytes from the middle of each file, where pictures and coded samples are.
  private let needles: [Data]

  /// - Parameter paths: Images and segments, or directories of them. Other files are left out.
  public init(in paths: [String]) throws {
    let files = try paths.flatMap { path in
      var isDirectory: ObjCBool = false
      let exists = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
      guard exists, isDirectory.boolValue else { return [path] }
      return try FileManager.default.subpathsOfDirectory(atPath: path).map { path + "/" + $0 }
    }
    let pictures = files.filter { file in
      let name = (file as NSString).lastPathComponent
      return name.hasSuffix(".jpg") || name.hasSuffix(".png") || name.hasPrefix("segment-") && name.hasSuffix(".mp4")
    }
    needles = try pictures.compactMap { file in
      let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
      guard bytes.count > 200 else { return nil }
      return bytes.dropFirst(bytes.count / 2).prefix(48)
    }
    guard !needles.isEmpty else { throw Tool.Failure("no picture in \(paths)") }
  }

  /// Whether some bytes have a part of any picture.
  public func isPart(of bytes: Data) -> Bool { needles.contains { bytes.range(of: $0) != nil } }

  /// Returns the files below a directory that have a part of any picture.
  public func copies(below path: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: path).filter { name in
      guard let bytes = FileManager.default.contents(atPath: path + "/" + name) else { return false }
      return isPart(of: bytes)
    }
  }
}
