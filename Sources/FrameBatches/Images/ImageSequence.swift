// The pictures of a file that has several: an animation, or the pages of a TIFF. Only headers are read, each byte once. Files are
// untrusted: a file that breaks off has the pictures before that place.

/// The pictures of a file that has at least two, and how they become what a viewer shows.
package struct ImageSequence: Sendable {
  /// A picture that is drawn on the canvas of the file.
  package struct Picture: Sendable {
    /// Its upper left corner on the canvas.
    package let x: Int
    package let y: Int
    package let size: PixelSize
    /// How long it is shown, in nanoseconds; 0 where the file does not tell.
    package let durationNs: Int64
    /// Whether the canvas is visible through its transparent pixels; else they replace those of the canvas.
    package let blends: Bool
    /// The treatment of its area before the next picture is drawn.
    package let disposal: Disposal
    /// The part of the file that has its pixels: blocks of a GIF, chunks of a PNG or a WebP, or the place of a TIFF's directory.
    package let bytes: Range<Int>
    /// The block of a GIF that tells its transparent colour; else empty.
    package let control: Range<Int>

    init(
      x: Int = 0, y: Int = 0, size: PixelSize, durationNs: Int64 = 0, blends: Bool = false, disposal: Disposal = .keep,
      bytes: Range<Int>, control: Range<Int> = 0..<0
    ) {
      (self.x, self.y, self.size, self.durationNs) = (x, y, size, durationNs)
      (self.blends, self.disposal, self.bytes, self.control) = (blends, disposal, bytes, control)
    }

    /// Whether it fills a canvas of this size.
    package func fills(_ canvas: PixelSize) -> Bool { x == 0 && y == 0 && size == canvas }
  }

  package enum Disposal: Sendable { case keep, clear, restore }

  package let kind: ImageKind
  /// The size of the canvas.
  package let size: PixelSize
  package let pictures: [Picture]
  /// Whether the file has all the pictures that it announces.
  package let isWhole: Bool

  /// Pictures of one file; the rest counts as missing.
  package static let maximumCount = 100_000
  /// Browsers show a picture of at most 10 ms, which most programs do not mean, for 100 ms.
  private static let (shortestNs, usualNs): (Int64, Int64) = (10_000_000, 100_000_000)

  /// - Returns: nil for a file of one picture, and for kinds whose further pictures are not read.
  package init?(of file: [UInt8], _ kind: ImageKind) {
    let found: (size: PixelSize, pictures: [Picture], isWhole: Bool)?
    switch kind {
    case .gif: found = GIFFile(file).map { ($0.size, $0.pictures, $0.isWhole) }
    case .png: found = Self.ofPNG(file)
    case .webp: found = Self.ofWebP(file)
    case .tiff: found = Self.ofTIFF(file)
    case .jpeg, .heic, .avif, .jpegXL, .bmp: return nil
    }
    guard let found, found.pictures.count > 1 else { return nil }
    (self.kind, size, pictures, isWhole) = (kind, found.size, found.pictures, found.isWhole)
  }

  /// Returns the number of pictures in a file; 1 for most.
  package static func count(in file: [UInt8], _ kind: ImageKind) -> Int {
    switch kind {
    case .heic, .avif: HEIFFile.sequenceCount(in: file)
    default: ImageSequence(of: file, kind)?.pictures.count ?? 1
    }
  }

  /// Whether the file tells how long its pictures are shown.
  package var hasDurations: Bool { kind != .tiff }

  /// Returns when each picture appears, and when the last one ends, in milliseconds from the first one.
  package var offsetsMs: (starts: [Int64], end: Int64) {
    var sum: Int64 = 0
    let starts = pictures.map { picture in
      defer { sum += picture.durationNs > Self.shortestNs ? picture.durationNs : Self.usualNs }
      return sum.roundedDivision(by: 1_000_000)
    }
    return (starts, sum.roundedDivision(by: 1_000_000))
  }

  /// Returns the latest of some pictures that shows nothing of those before it; nil if each shows something.
  package func independent(in indexes: ClosedRange<Int>) -> Int? {
    indexes.reversed().first { index in
      if index == 0 || !pictures[index].blends && pictures[index].fills(size) { return true }
      let before = pictures[index - 1]
      return before.disposal == .clear && before.fills(size)
    }
  }

  // MARK: - Kinds

  /// An APNG (PNG, third edition, 11.3.6). A picture in IDAT is one of its pictures if an fcTL precedes it.
  private static func ofPNG(_ file: [UInt8]) -> (PixelSize, [Picture], Bool)? {
    guard let size = ImageKind.png.size(of: file) else { return nil }
    var announced: Int?
    var pictures: [Picture] = []
    var (open, hasEnd): (ImageChunk?, Bool) = (nil, false)
    func close(before chunk: ImageChunk) -> Bool {
      defer { open = nil }
      guard let control = open else { return true }
      guard
        let picture = control.body.flatMap({
          Picture(fcTL: $0, bytes: control.range.upperBound..<chunk.range.lowerBound)
        })
      else { return false }
      pictures.append(picture)
      return pictures.count < maximumCount
    }
    for chunk in ImageChunk.chunks(of: file, .png, from: 8) {
      switch chunk.name {
      case "acTL": announced = announced ?? chunk.body.map { $0.prefix(4).bigEndian }
      case "IDAT" where announced == nil: return nil
      case "fcTL":
        guard close(before: chunk) else { return (size, pictures, false) }
        open = chunk
      case "IEND":
        hasEnd = close(before: chunk)
        return (size, pictures, hasEnd && pictures.count == announced)
      default: break
      }
    }
    return (size, pictures, false)
  }

  /// An animated WebP (RFC 9649, 2.7.1).
  private static func ofWebP(_ file: [UInt8]) -> (PixelSize, [Picture], Bool)? {
    guard file.count > 30, file[12..<16].elementsEqual("VP8X".utf8), file[20] & 2 != 0,
      let size = ImageKind.webp.size(of: file)
    else { return nil }
    var pictures: [Picture] = []
    for chunk in ImageChunk.chunks(of: file, .webp, from: 30) where chunk.name == "ANMF" {
      guard let body = chunk.body, body.count > 16, pictures.count < maximumCount else {
        return (size, pictures, false)
      }
      func number(_ offset: Int) -> Int { body.dropFirst(offset).prefix(3).littleEndian }
      let flags = body[body.startIndex + 15]
      pictures.append(
        Picture(
          x: 2 * number(0), y: 2 * number(3), size: PixelSize(width: 1 + number(6), height: 1 + number(9)),
          durationNs: Int64(number(12)) * 1_000_000, blends: flags & 2 == 0, disposal: flags & 1 == 1 ? .clear : .keep,
          bytes: body.startIndex + 16..<body.endIndex))
    }
    return (size, pictures, file[4..<8].littleEndian + 8 <= file.count)
  }

  /// The pages of a TIFF, without smaller copies and masks of others. Camera raw files have one picture.
  private static func ofTIFF(_ file: [UInt8]) -> (PixelSize, [Picture], Bool)? {
    guard let tiff = ExifData(tiff: file[...]), let first = ImageKind.tiff.size(of: file), CameraRaw(file) == nil else {
      return nil
    }
    let (places, isWhole) = tiff.directories(limit: maximumCount)
    let pages = places.compactMap { place -> Picture? in
      let page = tiff.directory(at: place)
      // NewSubfileType: 1 is a smaller copy, 4 a mask. SubfileType: 2 is a smaller copy.
      let kind = page.numbers(254, in: .image, limit: 1)?[0] ?? 0
      guard kind & 5 == 0, page.numbers(255, in: .image, limit: 1)?[0] != 2, let size = page.size else { return nil }
      return Picture(size: size, bytes: place..<place)
    }
    return (first, pages, isWhole)
  }
}

extension ImageSequence.Picture {
  /// - Parameter body: sequence, width, height, x, y, the numerator and denominator of seconds, disposal, blending.
  fileprivate init?(fcTL body: ArraySlice<UInt8>, bytes: Range<Int>) {
    guard body.count == 26, !bytes.isEmpty else { return nil }
    func number(_ offset: Int, _ count: Int) -> Int { body.dropFirst(offset).prefix(count).bigEndian }
    let (numerator, denominator) = (number(20, 2), number(22, 2))
    let isFirst = number(0, 4) == 0
    let disposal: ImageSequence.Disposal =
      switch number(24, 1) {
      case 0: .keep
      // Nothing lies behind the first picture.
      case 2 where !isFirst: .restore
      default: .clear
      }
    self.init(
      x: number(12, 4), y: number(16, 4), size: PixelSize(width: number(4, 4), height: number(8, 4)),
      durationNs: Int64(numerator * 1_000_000_000 / (denominator == 0 ? 100 : denominator)),
      blends: number(25, 1) == 1, disposal: disposal, bytes: bytes)
  }
}
