// The directory at the end of a zip archive (APPNOTE.TXT 6.3.10, sections 4.3.12 to 4.3.16).

/// The entries of an archive. No entry overlaps another, or the directory.
struct ZipDirectory {
  /// The entries, in the order of their offsets.
  let entries: [ZipEntry]
  /// The offset of the directory.
  let start: Int

  init(_ file: ZipFile, limits: Limits) throws {
    let end = try ZipEnd(file)
    guard end.entries <= limits.entries else { throw Archive.hasTooManyEntries(file.name, limits) }
    // An entry has a name of at most 1024 bytes, and a few numbers.
    guard end.directory.count / 2_048 <= limits.entries else {
      throw file.bad("its directory has \(end.directory.count) bytes")
    }
    let bytes = try file.bytes(end.directory)
    var entries: [ZipEntry] = []
    var rest = bytes
    while !rest.isEmpty {
      guard entries.count < end.entries, let entry = ZipEntry(&rest) else {
        throw file.bad("entry \(entries.count + 1) of \(end.entries) in its directory makes no sense")
      }
      entries.append(entry)
    }
    guard entries.count == end.entries else {
      throw file.bad("\(entries.count) entries in its directory, and not \(end.entries)")
    }
    start = end.directory.lowerBound
    self.entries = entries.sorted { $0.offset < $1.offset }
    for (index, entry) in self.entries.enumerated() {
      guard entry.offset < start, entry.packedSize < start, entry.leastEnd <= limit(of: index) else {
        throw overlap(entry, file)
      }
    }
  }

  /// Returns the end of the space of an entry: the offset of the next entry, or of the directory.
  func limit(of index: Int) -> Int { index + 1 < entries.count ? entries[index + 1].offset : start }

  func overlap(_ entry: ZipEntry, _ file: ZipFile) -> BadBatch {
    file.bad("'\(entry.header.path.shortened(to: 80))' reaches into the next entry or the directory")
  }
}

/// The end record of an archive: the number of entries, and the range of the directory.
private struct ZipEnd {
  let entries: Int
  let directory: Range<Int>

  /// The size of the record with the longest comment.
  private static let mostBytes = 22 + 65_535

  init(_ file: ZipFile) throws {
    let tailStart = max(0, file.count - Self.mostBytes)
    let tail = try file.bytes(tailStart..<file.count)
    // The last record whose comment ends with the file.
    let place = stride(from: tail.endIndex - 22, through: tail.startIndex, by: -1).first {
      tail[$0] == 0x50 && tail[$0...].number(0, 4) == 0x0605_4B50
        && tail[$0...].number(20, 2) == tail.endIndex - $0 - 22
    }
    guard let place else { throw file.bad("it breaks off: no end record") }
    let record = tail[place...]
    var end = tailStart + (place - tail.startIndex)
    let disks = [record.number(4, 2), record.number(6, 2)]
    var numbers = [record.number(8, 2), record.number(10, 2), record.number(12, 4), record.number(16, 4)]
    if let wide = try Self.wideRecord(before: end, file) {
      let wideNumbers = [24, 32, 40, 48].map { wide.bytes.number($0, 8) }
      // The old record has the same numbers, or the largest ones, which mean that they do not fit.
      for (index, most) in [0xFFFF, 0xFFFF, 0xFFFF_FFFF, 0xFFFF_FFFF].enumerated() {
        guard numbers[index] == most || numbers[index] == wideNumbers[index] else {
          throw file.bad("its two end records differ")
        }
      }
      (numbers, end) = (wideNumbers, wide.start)
    }
    guard disks.allSatisfy({ $0 == 0 || $0 == 0xFFFF }), numbers[0] == numbers[1] else {
      throw file.bad("it is one part of several")
    }
    let (count, start) = (numbers[2], numbers[3])
    guard start <= end, count == end - start else { throw file.bad("its directory is not where its end record says") }
    entries = numbers[0]
    directory = start..<end
  }

  /// Returns the end record of zip64, to which the locator before the usual record points; nil without a locator.
  private static func wideRecord(before end: Int, _ file: ZipFile) throws -> (bytes: ArraySlice<UInt8>, start: Int)? {
    guard end >= 20, case let locator = try file.bytes(end - 20..<end), locator.number(0, 4) == 0x0706_4B50 else {
      return nil
    }
    let start = locator.number(8, 8)
    guard start <= end - 20 - 56, case let bytes = try file.bytes(start..<start + 56),
      bytes.number(0, 4) == 0x0606_4B50, bytes.number(4, 8) == end - 20 - start - 12, bytes.number(16, 8) == 0
    else { throw file.bad("its zip64 end record is not where its locator says") }
    return (bytes, start)
  }
}

extension ArraySlice<UInt8> {
  /// Returns an unsigned number, lowest byte first; `Int.max` for a larger one.
  func number(_ offset: Int, _ count: Int) -> Int {
    Int(clamping: dropFirst(offset).prefix(count).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }
}
