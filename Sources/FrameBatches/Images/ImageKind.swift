/// Image formats, told apart by their first bytes.
package enum ImageKind: String, Hashable, CaseIterable {
  case jpeg = "JPEG"
  case png = "PNG"
  case webp = "WebP"
  case heic = "HEIC"
  case avif = "AVIF"
  case jpegXL = "JPEG XL"
  case gif = "GIF"
  case bmp = "BMP"
  case tiff = "TIFF"

  package var name: String { rawValue }

  /// Whether these bytes begin like an image.
  static func isImage(_ prefix: some Collection<UInt8>) -> Bool { ImageKind(of: prefix) != nil }

  package init?(of file: some Collection<UInt8>) {
    if file.starts(with: [0xFF, 0xD8, 0xFF]) {
      self = .jpeg
    } else if file.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
      self = .png
    } else if file.starts(with: "RIFF".utf8), file.dropFirst(8).starts(with: "WEBP".utf8) {
      self = .webp
    } else if let kind = Self(ofOther: Array(file.prefix(64))) {
      self = kind
    } else {
      return nil
    }
  }

  private init?(ofOther start: [UInt8]) {
    func has(_ text: String, at offset: Int = 0) -> Bool { start.dropFirst(offset).starts(with: text.utf8) }
    if has("ftyp", at: 4) {
      self.init(brandsOf: start)
    } else if start.starts(with: [0xFF, 0x0A]) || start.starts(with: [0, 0, 0, 12]) && has("JXL \r\n", at: 4) {
      self = .jpegXL
    } else if has("GIF87a") || has("GIF89a") {
      self = .gif
    } else if has("BM"), start.count >= 15, [12, 40, 52, 56, 64, 108, 124].contains(start[14]) {
      // The size of the second header: other files may begin with these two letters.
      self = .bmp
    } else if has("II*\0") || has("MM\0*") || has("II+\0") || has("MM\0+") {
      self = .tiff
    } else {
      return nil
    }
  }

  /// The brands of a file in boxes (ISO/IEC 14496-12, 4.3): the major one, a version, and the compatible ones. An image that names
  /// no codec first (`mif1`) names it behind.
  private init?(brandsOf start: [UInt8]) {
    let size = min(max(start.prefix(4).bigEndian, 12), start.count)
    let brands = stride(from: 8, to: size - 3, by: 4).filter { $0 != 12 }.map {
      String(decoding: start[$0..<$0 + 4], as: UTF8.self)
    }
    guard let major = brands.first else { return nil }
    let isImage = ["mif1", "mif2", "msf1"].contains(major)
    if ["avif", "avis"].contains(major) || isImage && brands.contains("avif") {
      self = .avif
    } else if isImage || ["heic", "heix", "heim", "heis", "hevc", "hevx"].contains(major) {
      self = .heic
    } else {
      return nil
    }
  }
}

// MARK: - Sizes

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
