/// The blocks of a GIF (GIF89a).
package struct GIFFile {
  /// The size of the logical screen.
  package let size: PixelSize
  /// The header with the global palette.
  package let head: Range<Int>
  package private(set) var pictures: [ImageSequence.Picture] = []
  /// Whether the trailer was found behind the last picture.
  package private(set) var isWhole = false

  /// - Returns: nil for a file without a header.
  package init?(_ file: [UInt8]) {
    guard let head = Self.head(of: file) else { return nil }
    self.head = head
    size = PixelSize(width: file[6..<8].littleEndian, height: file[8..<10].littleEndian)
    var offset = head.upperBound
    // The latest control block is that of the next picture.
    var control = 0..<0
    while offset < file.count, pictures.count < ImageSequence.maximumCount {
      switch file[offset] {
      case 0x21:
        guard offset + 1 < file.count, let end = Self.endOfParts(of: file, from: offset + 2) else { return }
        if file[offset + 1] == 0xF9 { control = offset..<end }
        offset = end
      case 0x2C:
        guard offset + 10 < file.count else { return }
        let data = offset + 10 + Self.paletteBytes(file[offset + 9])
        guard data < file.count, let end = Self.endOfParts(of: file, from: data + 1) else { return }
        pictures.append(Self.picture(in: file, offset..<end, control))
        (offset, control) = (end, 0..<0)
      case 0x3B:
        isWhole = true
        return
      default: return
      }
    }
  }

  /// Returns the header with the global palette; nil where the file breaks off in it.
  package static func head(of file: [UInt8]) -> Range<Int>? {
    guard file.count > 13, case let end = 13 + paletteBytes(file[10]), end <= file.count else { return nil }
    return 0..<end
  }

  /// - Parameter control: 0x21, 0xF9, 4, flags, hundredths of a second, the transparent colour, 0; or nothing.
  private static func picture(in file: [UInt8], _ image: Range<Int>, _ control: Range<Int>) -> ImageSequence.Picture {
    func number(_ offset: Int) -> Int { file[offset..<offset + 2].littleEndian }
    let (flags, hundredths) =
      control.count < 8 ? (0, 0) : (file[control.lowerBound + 3], number(control.lowerBound + 4))
    let disposal: ImageSequence.Disposal =
      switch flags >> 2 & 7 {
      case 2: .clear
      case 3: .restore
      default: .keep
      }
    let start = image.lowerBound
    return ImageSequence.Picture(
      x: number(start + 1), y: number(start + 3), size: PixelSize(width: number(start + 5), height: number(start + 7)),
      durationNs: Int64(hundredths) * 10_000_000, blends: flags & 1 == 1, disposal: disposal, bytes: image,
      control: control)
  }

  package static func paletteBytes(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 6 << Int(flags & 7) }

  /// Returns the end of parts that each begin with their size; the last one is empty.
  private static func endOfParts(of file: [UInt8], from start: Int) -> Int? {
    var offset = start
    while offset < file.count {
      let size = Int(file[offset])
      offset += 1 + size
      if size == 0 { return offset }
    }
    return nil
  }
}
