// The items of a HEIF file (ISO/IEC 23008-12), which HEIC and AVIF are. Only this code reads the boxes; libavcodec gets nothing but
// the coded pictures. All numbers come from untrusted files: the sum of all tables is bounded, and each offset is checked.

package struct HEIFFile {
  /// A coded picture, a grid of pictures, EXIF data, or anything else.
  struct Item {
    /// Four characters.
    var type = ""
    /// Where its bytes are in the file, in order; they may lie behind its end. Empty where they are not in the file itself.
    var extents: [Range<Int>] = []
    /// In the order in which they apply.
    var properties: [Property] = []
    /// The items that it refers to, by the kind of the reference.
    var references: [String: [Int]] = [:]
  }

  struct Property {
    let box: ImageBox
    /// Whether a reader that does not know it must not show the item.
    let isEssential: Bool
  }

  private let bytes: [UInt8]
  private(set) var items: [Int: Item] = [:]
  /// The number of the item to show.
  let primary: Int

  /// Maximum rows of all tables together; the largest grid that is read has some 40 000.
  private static let maximumRows = 65_536
  /// Maximum extents, and properties, of an item. Real ones have one extent, and up to a dozen properties.
  private static let maximumParts = 64

  /// - Parameter bytes: the file, or its beginning with the whole `meta` box.
  /// - Returns: nil for a file without valid tables.
  package init?(_ bytes: [UInt8]) {
    self.bytes = bytes
    guard let meta = ImageBox.first("meta", in: bytes[...]), meta.isWhole else { return nil }
    // Version and flags come first.
    let boxes = Array(ImageBox.boxes(in: meta.body.dropFirst(4)).prefix(64))
    guard boxes.allSatisfy(\.isWhole) else { return nil }
    func first(_ type: String) -> ArraySlice<UInt8>? { boxes.first { $0.type == type }?.body }
    var pitm = NumberReader(first("pitm") ?? [])
    guard let version = pitm.versionAndFlags()?.version, let primary = pitm.number(version == 0 ? 2 : 4) else {
      return nil
    }
    self.primary = primary
    var rows = Self.maximumRows
    guard let iinf = first("iinf"), readTypes(iinf, &rows),
      let iloc = first("iloc"), readPlaces(iloc, idat: first("idat"), &rows),
      first("iref").map({ readReferences($0, &rows) }) ?? true,
      let iprp = first("iprp"), readProperties(iprp, &rows)
    else { return nil }
  }

  /// Bytes of the file.
  var byteCount: Int { bytes.count }

  /// Returns the number of bytes of an item; nil where the file does not have all of them.
  func byteCount(of item: Item) -> Int? {
    var count = 0
    for extent in item.extents {
      count += extent.count
      guard extent.upperBound <= bytes.count, count <= bytes.count else { return nil }
    }
    return count > 0 ? count : nil
  }

  /// Whether the file has all bytes of all its items.
  package var isWhole: Bool { items.values.allSatisfy { $0.extents.isEmpty || byteCount(of: $0) != nil } }

  /// Returns the bytes of an item; nil where the file does not have all of them.
  func data(of item: Item) -> ArraySlice<UInt8>? {
    guard byteCount(of: item) != nil, let first = item.extents.first else { return nil }
    return item.extents.count == 1 ? bytes[first] : item.extents.flatMap { bytes[$0] }[...]
  }

  /// Returns the number of pictures in the track of an image sequence (ISO/IEC 23008-12, 7); 1 for a file without a track.
  static func sequenceCount(in file: [UInt8]) -> Int {
    guard let movie = ImageBox.first("moov", in: file[...]) else { return 1 }
    let counts = ImageBox.boxes(in: movie.body).prefix(64).filter { $0.type == "trak" }.compactMap { track -> Int? in
      var table = track.body
      for type in ["mdia", "minf", "stbl", "stsz"] {
        guard let box = ImageBox.first(type, in: table) else { return nil }
        table = box.body
      }
      // Version and flags, the size of all samples, the number of samples.
      return table.count >= 12 ? table.dropFirst(8).prefix(4).bigEndian : nil
    }
    return max(1, counts.max() ?? 1)
  }

  /// The TIFF of the EXIF data.
  var exif: ArraySlice<UInt8>? {
    let found = items.filter { $0.value.type == "Exif" }
    let own = found.filter { $0.value.references["cdsc"]?.contains(primary) == true }
    guard let number = own.keys.min() ?? found.keys.min(), let item = items[number] else { return nil }
    return data(of: item).flatMap(Self.tiff)
  }

  /// Returns the TIFF in EXIF data, which begin with its offset.
  static func tiff(of data: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    var reader = NumberReader(data)
    guard let offset = reader.number(4), offset <= reader.rest.count else { return nil }
    return reader.rest.dropFirst(offset)
  }

  // MARK: - The tables (ISO/IEC 14496-12, 8.11)

  private mutating func readTypes(_ iinf: ArraySlice<UInt8>, _ rows: inout Int) -> Bool {
    var reader = NumberReader(iinf)
    guard let version = reader.versionAndFlags()?.version, reader.number(version == 0 ? 2 : 4) != nil else {
      return false
    }
    for box in ImageBox.boxes(in: reader.rest) where box.type == "infe" {
      rows -= 1
      var entry = NumberReader(box.body)
      guard rows >= 0, let version = entry.versionAndFlags()?.version else { return false }
      // Older versions have names in place of types.
      guard version >= 2 else { continue }
      guard let number = entry.number(version == 2 ? 2 : 4), entry.number(2) != nil, let type = entry.bytes(4) else {
        return false
      }
      items[number, default: Item()].type = String(decoding: type, as: UTF8.self)
    }
    return true
  }

  private mutating func readPlaces(
    _ iloc: ArraySlice<UInt8>, idat: ArraySlice<UInt8>?, _ rows: inout Int
  ) -> Bool {
    var reader = NumberReader(iloc)
    guard let version = reader.versionAndFlags()?.version, version <= 2, let sizes = reader.number(2),
      let count = reader.number(version < 2 ? 2 : 4)
    else { return false }
    let (offsetBytes, lengthBytes, baseBytes) = (sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15)
    let indexBytes = version == 0 ? 0 : sizes & 15
    guard [offsetBytes, lengthBytes, baseBytes, indexBytes].allSatisfy({ [0, 4, 8].contains($0) }) else { return false }
    for _ in 0..<count {
      guard let number = reader.number(version < 2 ? 2 : 4), let method = version == 0 ? 0 : reader.number(2),
        let file = reader.number(2), let base = reader.number(baseBytes), let parts = reader.number(2)
      else { return false }
      // Bytes of the file, or of `idat`; other files and items are not supported.
      let area = method & 15 == 0 ? bytes[...] : method & 15 == 1 ? idat : nil
      var extents: [Range<Int>] = []
      rows -= 1 + parts
      guard rows >= 0, parts <= Self.maximumParts else { return false }
      for _ in 0..<parts {
        guard reader.number(indexBytes) != nil, let offset = reader.number(offsetBytes),
          let length = reader.number(lengthBytes)
        else { return false }
        guard file == 0, let area else { continue }
        let (start, isBeyond) = base.addingReportingOverflow(offset)
        guard !isBeyond, start <= 1 << 40, length <= 1 << 40 else { return false }
        // Without a length, the item is all that follows.
        let end = length == 0 ? max(start, area.count) : start + length
        guard method & 15 == 0 || end <= area.count else { return false }
        extents.append(area.startIndex + start..<area.startIndex + end)
      }
      items[number, default: Item()].extents = extents
    }
    return true
  }

  private mutating func readReferences(_ iref: ArraySlice<UInt8>, _ rows: inout Int) -> Bool {
    var reader = NumberReader(iref)
    guard let version = reader.versionAndFlags()?.version else { return false }
    let size = version == 0 ? 2 : 4
    for box in ImageBox.boxes(in: reader.rest) {
      var entry = NumberReader(box.body)
      guard let from = entry.number(size), let count = entry.number(2) else { return false }
      rows -= 1 + count
      guard rows >= 0 else { return false }
      for _ in 0..<count {
        guard let to = entry.number(size) else { return false }
        items[from, default: Item()].references[box.type, default: []].append(to)
      }
    }
    return true
  }

  private mutating func readProperties(_ iprp: ArraySlice<UInt8>, _ rows: inout Int) -> Bool {
    guard let ipco = ImageBox.first("ipco", in: iprp) else { return false }
    let properties = Array(ImageBox.boxes(in: ipco.body).prefix(rows))
    rows -= properties.count
    for ipma in ImageBox.boxes(in: iprp) where ipma.type == "ipma" {
      var reader = NumberReader(ipma.body)
      guard let (version, flags) = reader.versionAndFlags(), let count = reader.number(4) else { return false }
      let indexBytes = flags & 1 == 0 ? 1 : 2
      for _ in 0..<count {
        guard let number = reader.number(version == 0 ? 2 : 4), let associations = reader.number(1) else {
          return false
        }
        rows -= 1 + associations
        guard rows >= 0 else { return false }
        for _ in 0..<associations {
          guard let entry = reader.number(indexBytes) else { return false }
          let essential = 1 << (8 * indexBytes - 1)
          let index = entry & (essential - 1)
          // 0 means no property.
          guard index > 0 else { continue }
          guard index <= properties.count, items[number, default: Item()].properties.count < Self.maximumParts else {
            return false
          }
          items[number, default: Item()].properties.append(
            Property(box: properties[index - 1], isEssential: entry & essential != 0))
        }
      }
    }
    return true
  }
}
