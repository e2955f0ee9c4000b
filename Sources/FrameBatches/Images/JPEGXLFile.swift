/// A JPEG XL: its codestream, which may lie in boxes (ISO/IEC 18181-2), and what the start of that tells (ISO/IEC 18181-1, annex D).
package struct JPEGXLFile {
  /// The size as it is shown: decoders turn the picture.
  package let size: PixelSize
  /// The coded picture without the boxes; nil where the file breaks off in it.
  package let codestream: ArraySlice<UInt8>?

  /// - Parameter file: the file, or its beginning.
  package init?(_ file: [UInt8]) {
    let (start, isWhole) = Self.codestream(of: file)
    guard start.starts(with: [0xFF, 0x0A]) else { return nil }
    var bits = Bits(start.dropFirst(2))
    let isSmall = bits.read(1) == 1
    let height = Self.side(&bits, isSmall)
    let ratio = bits.read(3)
    // Ratios of width to height.
    let ratios = [(1, 1), (12, 10), (4, 3), (3, 2), (16, 9), (5, 4), (2, 1)]
    let width = ratio == 0 ? Self.side(&bits, isSmall) : height * ratios[ratio - 1].0 / ratios[ratio - 1].1
    let isDefault = bits.read(1) == 1
    // The orientation in EXIF's order, less one: a quarter turn from the fifth on.
    let isTurned = !isDefault && bits.read(1) == 1 && bits.read(3) > 3
    guard !bits.isBeyondEnd else { return nil }
    size = isTurned ? PixelSize(width: height, height: width) : PixelSize(width: width, height: height)
    codestream = isWhole ? start : nil
  }

  private static func side(_ bits: inout Bits, _ isSmall: Bool) -> Int {
    if isSmall { return (bits.read(5) + 1) * 8 }
    return 1 + bits.read([9, 13, 18, 30][bits.read(2)])
  }

  /// Returns the codestream, or as much of it as the file has.
  private static func codestream(of file: [UInt8]) -> (bytes: ArraySlice<UInt8>, isWhole: Bool) {
    // It has no mark at its end.
    if file.starts(with: [0xFF, 0x0A]) { return (file[...], true) }
    var parts: [ArraySlice<UInt8>] = []
    var isWhole = false
    for box in ImageBox.boxes(in: file[...]).prefix(ImageBox.maximumCount) {
      if box.type == "jxlc", parts.isEmpty { return (box.body, box.isWhole) }
      guard box.type == "jxlp" else { continue }
      var part = NumberReader(box.body)
      // The highest bit of its number marks the last part.
      guard let number = part.number(4), number & 0x7FFF_FFFF == parts.count else { break }
      parts.append(part.rest)
      isWhole = box.isWhole && number >> 31 == 1
      if isWhole || !box.isWhole { break }
    }
    return (parts.count == 1 ? parts[0] : Array(parts.joined())[...], isWhole)
  }

  /// Bits, of each byte the lowest first.
  private struct Bits {
    private let bytes: ArraySlice<UInt8>
    private var position = 0
    private(set) var isBeyondEnd = false

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes.prefix(32) }

    mutating func read(_ count: Int) -> Int {
      var value = 0
      for bit in 0..<count {
        guard position < 8 * bytes.count else {
          isBeyondEnd = true
          return 0
        }
        value |= Int(bytes[bytes.startIndex + position / 8] >> (position % 8) & 1) << bit
        position += 1
      }
      return value
    }
  }
}
