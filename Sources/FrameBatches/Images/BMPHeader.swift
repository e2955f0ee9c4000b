/// The headers of a BMP: of the file, and of the bitmap.
package struct BMPHeader {
  package enum Compression: Equatable {
    case none
    /// Masks tell the bits of each colour.
    case bitFields
    /// Runs of equal pixels, or a file of another format.
    case other
  }

  package let size: PixelSize
  package let compression: Compression
  /// Bytes up to the end of the last row; 0 for a compressed bitmap, and the highest number where no picture can be so large.
  package let byteCount: Int

  package init?(_ file: some Collection<UInt8>) {
    let start = Array(file.prefix(54))
    guard start.starts(with: "BM".utf8), start.count >= 26 else { return nil }
    let headerBytes = start[14..<18].littleEndian
    let depth: Int
    if headerBytes == 12 {
      size = PixelSize(width: start[18..<20].littleEndian, height: start[20..<22].littleEndian)
      (depth, compression) = (start[24..<26].littleEndian, .none)
    } else {
      guard headerBytes >= 40, start.count >= 34 else { return nil }
      // A negative height means that the top row comes first.
      let (width, height) = (Self.signed(start[18..<22]), Self.signed(start[22..<26]))
      size = PixelSize(width: max(width, 0), height: abs(height))
      depth = start[28..<30].littleEndian
      switch start[30..<34].littleEndian {
      case 0: compression = .none
      case 3: compression = .bitFields
      default: compression = .other
      }
    }
    let isPossible = max(size.width, size.height) <= 1 << 24 && depth <= 32
    let rowBytes = isPossible ? (size.width * depth + 31) / 32 * 4 : 0
    byteCount = !isPossible ? .max : compression == .other ? 0 : start[10..<14].littleEndian + rowBytes * size.height
  }

  private static func signed(_ bytes: ArraySlice<UInt8>) -> Int {
    Int(Int32(bitPattern: UInt32(truncatingIfNeeded: bytes.littleEndian)))
  }
}
