/// The EXIF data of an image file (CIPA DC-008): a TIFF, wherever the image format stores it. A TIFF itself has the same directories.
package struct ExifData {
  /// A directory of tags.
  package enum Directory {
    /// TIFF's first one.
    case image
    /// The one that has the facts of the capture.
    case capture
  }

  private let tiff: ArraySlice<UInt8>
  package let isLittleEndian: Bool
  /// The offset of the first directory in the TIFF.
  private let first: Int

  /// - Parameter jpeg: the file if it is a JPEG; perhaps only its beginning.
  /// - Returns: nil for a file without a TIFF.
  package init?(of file: [UInt8], kind: ImageKind, jpeg: JPEGFile?) {
    let header = "Exif\0\0".utf8
    let body: ArraySlice<UInt8>? =
      switch kind {
      case .jpeg:
        jpeg.flatMap { jpeg in
          jpeg.segments.prefix { $0.marker != 0xDA }.filter { $0.marker == 0xE1 }.map(jpeg.body)
            .first { $0.starts(with: header) }
        }
      case .png: ImageChunk.chunks(of: file, kind, from: 8).first { $0.name == "eXIf" }?.body
      case .webp: ImageChunk.chunks(of: file, kind, from: 12).first { $0.name == "EXIF" }?.body
      case .heic, .avif: HEIFFile(file)?.exif
      case .tiff: file[...]
      case .jpegXL: ImageBox.first("Exif", in: file[...]).flatMap { HEIFFile.tiff(of: $0.body) }
      case .gif, .bmp: nil
      }
    guard let body else { return nil }
    self.init(tiff: body.starts(with: header) ? body.dropFirst(header.count) : body)
  }

  /// - Returns: nil for a file without the header of a TIFF.
  package init?(tiff: ArraySlice<UInt8>) {
    self.tiff = tiff
    isLittleEndian = tiff.starts(with: "II".utf8)
    guard isLittleEndian || tiff.starts(with: "MM".utf8),
      Self.number(in: tiff, isLittleEndian, at: 2, 2) == 42,
      let first = Self.number(in: tiff, isLittleEndian, at: 4, 4)
    else { return nil }
    self.first = first
  }

  /// Returns the number of a tag with one SHORT; nil if there is none.
  package func short(_ tag: Int, in directory: Directory) -> Int? {
    // The first two of the value's four bytes.
    entry(tag, in: directory).flatMap { number(at: $0 + 8, 2) }
  }

  /// Returns the numbers of a tag with SHORTs or LONGs; nil if there is none, or it has more than `limit` numbers.
  package func numbers(_ tag: Int, in directory: Directory, limit: Int) -> [Int]? {
    guard let entry = entry(tag, in: directory), let type = number(at: entry + 2, 2), [3, 4].contains(type),
      let count = number(at: entry + 4, 4), (1...limit).contains(count)
    else { return nil }
    let size = type == 3 ? 2 : 4
    guard let start = count * size <= 4 ? entry + 8 : number(at: entry + 8, 4), start + count * size <= tiff.count
    else {
      return nil
    }
    return (0..<count).compactMap { number(at: start + $0 * size, size) }
  }

  /// The number of entries that the first directory states.
  var entryCount: Int { number(at: first, 2) ?? 0 }

  /// Returns the 12 bytes of each entry of the first directory; nil if the file breaks off in it.
  package var entries: [(tag: Int, bytes: ArraySlice<UInt8>)]? {
    guard let count = number(at: first, 2), first + 2 + 12 * count <= tiff.count else { return nil }
    return (0..<count).map { index in
      let entry = tiff.dropFirst(first + 2 + 12 * index).prefix(12)
      return (isLittleEndian ? entry.prefix(2).littleEndian : entry.prefix(2).bigEndian, entry)
    }
  }

  /// The size of the first directory's picture.
  package var size: PixelSize? {
    guard let width = numbers(0x100, in: .image, limit: 1), let height = numbers(0x101, in: .image, limit: 1) else {
      return nil
    }
    return PixelSize(width: width[0], height: height[0])
  }

  /// Returns the places of the directories, from the first one on, each of which names the next.
  ///
  /// - Returns: also whether these are all: the last one is whole and names no other.
  func directories(limit: Int) -> (places: [Int], areAll: Bool) {
    var places: [Int] = []
    var seen: Set<Int> = []
    var (place, bytes) = (first, 0)
    while place != 0 {
      // Directories that overlap would make much work of a small file.
      guard places.count < limit, seen.insert(place).inserted, let count = number(at: place, 2), bytes <= tiff.count,
        let next = number(at: place + 2 + 12 * count, 4)
      else { return (places, false) }
      bytes += 6 + 12 * count
      places.append(place)
      place = next
    }
    return (places, true)
  }

  /// Returns the same file with another directory as its first one.
  func directory(at place: Int) -> ExifData { ExifData(self, first: place) }

  private init(_ other: ExifData, first: Int) {
    (tiff, isLittleEndian, self.first) = (other.tiff, other.isLittleEndian, first)
  }

  /// Returns the text of a tag without the zero behind it; nil if there is none, or it is longer than 64 bytes.
  package func text(_ tag: Int, in directory: Directory) -> String? {
    guard let entry = entry(tag, in: directory), number(at: entry + 2, 2) == 2, let count = number(at: entry + 4, 4),
      (1...64).contains(count), let start = count <= 4 ? entry + 8 : number(at: entry + 8, 4),
      start + count <= tiff.count
    else { return nil }
    let bytes = tiff.dropFirst(start).prefix(count).prefix { $0 != 0 }
    return bytes.allSatisfy { (32...126).contains($0) } ? String(decoding: bytes, as: UTF8.self) : nil
  }

  /// Returns the offset of a tag's entry.
  private func entry(_ tag: Int, in directory: Directory) -> Int? {
    switch directory {
    case .image: return entry(tag, at: first)
    case .capture: return entry(0x8769, at: first).flatMap { number(at: $0 + 8, 4) }.flatMap { entry(tag, at: $0) }
    }
  }

  private func entry(_ tag: Int, at directory: Int) -> Int? {
    guard let count = number(at: directory, 2) else { return nil }
    for index in 0..<count {
      let entry = directory + 2 + 12 * index
      guard let found = number(at: entry, 2) else { return nil }
      if found == tag { return entry }
    }
    return nil
  }

  private func number(at offset: Int, _ count: Int) -> Int? { Self.number(in: tiff, isLittleEndian, at: offset, count) }

  private static func number(in tiff: ArraySlice<UInt8>, _ isLittleEndian: Bool, at offset: Int, _ count: Int) -> Int? {
    guard offset + count <= tiff.count else { return nil }
    let digits = tiff.dropFirst(offset).prefix(count)
    return isLittleEndian ? digits.littleEndian : digits.bigEndian
  }
}
