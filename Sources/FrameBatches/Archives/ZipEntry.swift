import Glibc

/// An entry of a zip archive, as the directory describes it.
struct ZipEntry {
  let header: ArchiveEntry
  /// The bytes of the name; the local header repeats them.
  let rawName: ArraySlice<UInt8>
  let method: Int
  let checksum: Int
  let packedSize: Int
  /// The offset of the local header.
  let offset: Int
  private let flags: Int

  /// Bytes of a record in the directory, without the name and other fields of variable length.
  private static let directoryBytes = 46
  /// Bytes of a local header, without fields of variable length.
  static let localBytes = 30

  /// Takes the first record of a directory.
  ///
  /// - Parameter directory: the rest of the directory; the record is removed from it.
  init?(_ directory: inout ArraySlice<UInt8>) {
    let record = directory
    let (nameBytes, extraBytes, commentBytes) = (record.number(28, 2), record.number(30, 2), record.number(32, 2))
    let count = Self.directoryBytes + nameBytes + extraBytes + commentBytes
    guard record.count >= count, record.number(0, 4) == 0x0201_4B50 else { return nil }
    directory = record.dropFirst(count)
    flags = record.number(8, 2)
    method = record.number(10, 2)
    checksum = record.number(16, 4)
    rawName = record.dropFirst(Self.directoryBytes).prefix(nameBytes)
    let sizes = Self.widened(
      [record.number(24, 4), record.number(20, 4), record.number(42, 4)],
      record.dropFirst(Self.directoryBytes + nameBytes).prefix(extraBytes))
    (packedSize, offset) = (sizes[1], sizes[2])
    let path = ZipName.path(rawName)
    // The Unix mode is 0 in archives of other systems, which mark a directory with a slash.
    let mode = UInt32(record.number(40, 2)) & S_IFMT
    let isDirectory = path.utf8.last == UInt8(ascii: "/") || mode == S_IFDIR
    let kind: ArchiveEntry.Kind = isDirectory ? .directory : [0, S_IFREG].contains(mode) ? .file : .other
    header = ArchiveEntry(path: path, kind: kind, size: sizes[0], isLink: mode == S_IFLNK)
  }

  private static let encrypted = "encrypted: pack it without a password"

  /// The lowest possible end offset. Extra fields of the local header can move it further.
  var leastEnd: Int { offset + Self.localBytes + rawName.count + packedSize }

  /// The reason why the entry is no file of the batch; nil for files and directories.
  var reasonToRefuse: String? {
    guard header.kind != .directory else { return nil }
    if let reason = header.reasonToRefuse { return reason }
    // Bits 0, 6 and 13: encrypted, strongly, and the names too. Method 99 is AES.
    if flags & 0x2041 != 0 || method == 99 { return Self.encrypted }
    guard method == 0 || method == 8 else { return "compressed with method \(method): pack it with deflate" }
    // Deflate expands one byte to at most 1032.
    let isPossible = method == 0 ? header.size == packedSize : header.size / 1_032 <= packedSize
    return isPossible ? nil : "damaged: its sizes contradict each other"
  }

  /// Returns how the local header contradicts the directory; nil if both agree.
  ///
  /// - Parameters:
  ///   - local: the first ``localBytes`` bytes of the header.
  ///   - name: the name and the extra fields behind it.
  func mismatch(_ local: ArraySlice<UInt8>, _ name: ArraySlice<UInt8>) -> String? {
    let differs = { (what: String) in "damaged: its local header has another \(what)" }
    guard name.prefix(local.number(26, 2)).elementsEqual(rawName) else { return differs("name") }
    guard local.number(8, 2) == method else { return differs("method") }
    guard local.number(6, 2) & 0x2041 == 0 else { return Self.encrypted }
    let sizes = Self.widened([local.number(22, 4), local.number(18, 4)], name.dropFirst(local.number(26, 2)))
    let numbers = [("size", sizes[0], header.size), ("packed size", sizes[1], packedSize)]
    for (what, here, there) in numbers + [("checksum", local.number(14, 4), checksum)] where here != there {
      // Bit 3: the writer did not know the numbers yet, and wrote them behind the entry.
      guard local.number(6, 2) & 8 != 0, here == 0 || here == 0xFFFF_FFFF else { return differs(what) }
    }
    return nil
  }

  /// Replaces each number that does not fit into four bytes by the one in the zip64 field (APPNOTE.TXT 4.5.3).
  private static func widened(_ numbers: [Int], _ extra: ArraySlice<UInt8>) -> [Int] {
    var rest = extra
    while rest.count >= 4, rest.number(0, 2) != 1 { rest = rest.dropFirst(4 + rest.number(2, 2)) }
    guard rest.count >= 4 else { return numbers }
    var field = rest.dropFirst(4).prefix(rest.number(2, 2))
    return numbers.map { number in
      guard number == 0xFFFF_FFFF, field.count >= 8 else { return number }
      defer { field = field.dropFirst(8) }
      return field.number(0, 8)
    }
  }
}
