extension ImageKind {
  /// Width and height in pixels as the header says, read before any memory is taken for them.
  package func size(of file: [UInt8]) -> (width: Int, height: Int)? {
    func u16(_ offset: Int) -> Int { Int(file[offset]) << 8 | Int(file[offset + 1]) }
    func u32(_ offset: Int) -> Int { u16(offset) << 16 | u16(offset + 2) }
    func littleU16(_ offset: Int) -> Int { Int(file[offset]) | Int(file[offset + 1]) << 8 }
    func littleU24(_ offset: Int) -> Int { littleU16(offset) | Int(file[offset + 2]) << 16 }
    switch self {
    case .webp:
      // The first chunk has it, in one of three forms (RFC 9649, 2.5 to 2.7).
      guard file.count >= 25 else { return nil }
      switch String(decoding: file[12..<16], as: UTF8.self) {
      case "VP8 " where file.count >= 30: return (littleU16(26) & 0x3FFF, littleU16(28) & 0x3FFF)
      case "VP8L":
        let bits = littleU24(21) | Int(file[24]) << 24
        return (1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
      case "VP8X" where file.count >= 30: return (1 + littleU24(24), 1 + littleU24(27))
      default: return nil
      }
    case .png:
      // IHDR comes first (ISO/IEC 15948, 5.6).
      guard file.count >= 24, file[12..<16].elementsEqual("IHDR".utf8) else { return nil }
      return (u32(16), u32(20))
    case .jpeg: return JPEGFile(file)?.size
    }
  }
}
