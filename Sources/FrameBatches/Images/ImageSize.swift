extension ImageKind {
  /// Returns the size in the header of a file. It is checked before memory is allocated for the pixels.
  package func size(of file: [UInt8]) -> PixelSize? {
    switch self {
    case .webp:
      // The first chunk has it, in one of three forms (RFC 9649, 2.5 to 2.7).
      guard file.count >= 25 else { return nil }
      switch String(decoding: file[12..<16], as: UTF8.self) {
      case "VP8 " where file.count >= 30:
        return PixelSize(width: file[26..<28].littleEndian & 0x3FFF, height: file[28..<30].littleEndian & 0x3FFF)
      case "VP8L":
        let bits = file[21..<25].littleEndian
        return PixelSize(width: 1 + (bits & 0x3FFF), height: 1 + (bits >> 14 & 0x3FFF))
      case "VP8X" where file.count >= 30:
        return PixelSize(width: 1 + file[24..<27].littleEndian, height: 1 + file[27..<30].littleEndian)
      default: return nil
      }
    case .png:
      // IHDR comes first (ISO/IEC 15948, 5.6).
      guard file.count >= 24, file[12..<16].elementsEqual("IHDR".utf8) else { return nil }
      return PixelSize(width: file[16..<20].bigEndian, height: file[20..<24].bigEndian)
    case .jpeg: return JPEGFile(file)?.size
    case .heic, .avif: return HEIFFile(file)?.size
    case .jpegXL: return JPEGXLFile(file)?.size
    case .gif:
      // The logical screen (GIF89a, 18).
      guard file.count >= 10 else { return nil }
      return PixelSize(width: file[6..<8].littleEndian, height: file[8..<10].littleEndian)
    case .bmp: return BMPHeader(file)?.size
    case .tiff: return ExifData(tiff: file[...])?.size
    }
  }
}

extension ArraySlice<UInt8> {
  /// The bytes as a number, the highest byte first.
  package var bigEndian: Int { reduce(0) { $0 << 8 | Int($1) } }
  package var littleEndian: Int { reversed().reduce(0) { $0 << 8 | Int($1) } }
}
