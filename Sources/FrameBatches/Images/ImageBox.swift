/// A box of HEIC, AVIF and JPEG XL (ISO/IEC 14496-12, 4.2).
package struct ImageBox {
  /// Four characters.
  package let type: String
  /// All of it, or as much as there is where the file breaks off.
  let body: ArraySlice<UInt8>
  /// Whether the file does not break off in the box.
  package let isWhole: Bool
  /// The bytes of the whole box, as its header tells them.
  package let size: Int
  /// Maximum number of boxes of a file that are read. A HEIC has three; a JPEG XL may have one for each part of its picture.
  package static let maximumCount = 4_096

  /// - Parameters:
  ///   - start: the first bytes of the box.
  ///   - available: the bytes from the start of the box to the end of what contains it.
  package init?(_ start: ArraySlice<UInt8>, available: Int) {
    var header = NumberReader(start)
    guard var size = header.number(4), let type = header.bytes(4) else { return nil }
    if size == 1 {
      guard let large = header.number(8) else { return nil }
      size = large
    } else if size == 0 {
      // It ends with what contains it.
      size = available
    }
    guard size >= start.count - header.rest.count else { return nil }
    self.size = size
    self.type = String(decoding: type, as: UTF8.self)
    body = header.rest.prefix(size - (start.count - header.rest.count))
    isWhole = size <= available
  }

  /// Returns the boxes that fill some bytes, up to one without a valid header.
  static func boxes(in bytes: ArraySlice<UInt8>) -> some Sequence<ImageBox> {
    sequence(state: bytes) { rest in
      guard !rest.isEmpty, let box = ImageBox(rest, available: rest.count) else { return nil }
      rest = rest.dropFirst(box.size)
      return box
    }
  }

  static func first(_ type: String, in bytes: ArraySlice<UInt8>) -> ImageBox? {
    boxes(in: bytes).prefix(maximumCount).first { $0.type == type }
  }
}
