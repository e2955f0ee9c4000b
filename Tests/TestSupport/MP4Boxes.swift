import Foundation

/// The boxes of an ISO base media file, read without code of the project.
public struct MP4Boxes {
  public struct Box {
    public let type: String
    public let body: Data
    /// The size in bytes, including the header.
    public let size: Int

    /// The child boxes, if the box contains only boxes.
    public var children: [Box] { MP4Boxes.read(body) }
    public subscript(type: String) -> Box? { children.first { $0.type == type } }
  }

  /// The boxes at the top level of a file.
  public static func read(_ path: String) throws -> [Box] {
    read(try Data(contentsOf: URL(fileURLWithPath: path)))
  }

  public static func read(_ data: Data) -> [Box] {
    var boxes: [Box] = []
    var rest = data
    while rest.count >= 8 {
      var (size, header) = (rest.integer(at: 0, bytes: 4), 8)
      if size == 1, rest.count >= 16 { (size, header) = (rest.integer(at: 8, bytes: 8), 16) }
      guard size >= header, size <= rest.count else { return [] }
      let type = String(decoding: rest.dropFirst(4).prefix(4), as: UTF8.self)
      boxes.append(Box(type: type, body: Data(rest.dropFirst(header).prefix(Int(size) - header)), size: Int(size)))
      rest = Data(rest.dropFirst(Int(size)))
    }
    return boxes
  }
}

extension Data {
  /// The bytes as a big-endian number.
  public func integer(at offset: Int, bytes: Int) -> UInt64 {
    dropFirst(offset).prefix(bytes).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
