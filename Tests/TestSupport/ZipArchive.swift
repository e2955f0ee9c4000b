/// A zip archive in which each field can be wrong.
public struct ZipArchive {
  public struct Entry {
    /// The name in the central directory.
    public var name: [UInt8]
    public var localName: [UInt8]
    /// The stored bytes, compressed if the method is deflate.
    public var packed: [UInt8]
    public var method = 0
    public var localMethod = 0
    public var flags = 0
    public var mode = 0o100644
    public var size: Int
    public var localSize: Int
    public var packedSize: Int
    public var checksum: UInt32
    public var localChecksum: UInt32
    /// Extra fields of the local header.
    public var localExtra: [UInt8] = []
    /// A wrong offset in the central directory, or nil for the correct one.
    public var offset: Int?

    /// Makes a stored entry.
    public init(_ name: String, _ bytes: [UInt8]) {
      (self.name, localName, packed) = (Array(name.utf8), Array(name.utf8), bytes)
      (size, localSize, packedSize) = (bytes.count, bytes.count, bytes.count)
      checksum = ZipArchive.checksum(bytes)
      localChecksum = checksum
    }
  }

  public var entries: [Entry]
  public var comment: [UInt8] = []
  /// Wrong numbers in the end record, or nil for the correct ones.
  public var count: Int?
  public var directorySize: Int?
  public var directoryOffset: Int?
  /// The zip64 end record, with its locator: count, size and offset of the directory. Nil means none.
  public var wide: (count: Int, size: Int, offset: Int)?

  public init(_ entries: [Entry]) { self.entries = entries }

  public var bytes: [UInt8] {
    var (body, directory) = ([UInt8](), [UInt8]())
    for entry in entries {
      let start = body.count
      body += Self.number(0x0403_4B50, 4) + Self.number(20, 2) + Self.number(entry.flags, 2)
      body += Self.number(entry.localMethod, 2) + Self.number(0, 4) + Self.number(Int(entry.localChecksum), 4)
      body += Self.number(entry.packedSize, 4) + Self.number(entry.localSize, 4)
      body += Self.number(entry.localName.count, 2) + Self.number(entry.localExtra.count, 2)
      body += entry.localName + entry.localExtra + entry.packed
      directory += Self.number(0x0201_4B50, 4) + Self.number(3 << 8 | 20, 2) + Self.number(20, 2)
      directory += Self.number(entry.flags, 2) + Self.number(entry.method, 2) + Self.number(0, 4)
      directory += Self.number(Int(entry.checksum), 4) + Self.number(entry.packedSize, 4) + Self.number(entry.size, 4)
      directory += Self.number(entry.name.count, 2) + Self.number(0, 8) + Self.number(0, 2)
      directory += Self.number(entry.mode, 2) + Self.number(entry.offset ?? start, 4) + entry.name
    }
    let start = body.count
    body += directory
    if let wide {
      let wideStart = body.count
      body += Self.number(0x0606_4B50, 4) + Self.number(44, 8) + Self.number(45, 2) + Self.number(45, 2)
      body += Self.number(0, 8) + Self.number(wide.count, 8) + Self.number(wide.count, 8)
      body += Self.number(wide.size, 8) + Self.number(wide.offset, 8)
      body += Self.number(0x0706_4B50, 4) + Self.number(0, 4) + Self.number(wideStart, 8) + Self.number(1, 4)
    }
    let count = count ?? entries.count
    body += Self.number(0x0605_4B50, 4) + Self.number(0, 4) + Self.number(count, 2) + Self.number(count, 2)
    body += Self.number(directorySize ?? directory.count, 4) + Self.number(directoryOffset ?? start, 4)
    return body + Self.number(comment.count, 2) + comment
  }

  /// Returns the number in little-endian byte order.
  private static func number(_ value: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
  }

  private static let table = (0..<256).map { (index: Int) -> UInt32 in
    var value = UInt32(index)
    for _ in 0..<8 { value = value & 1 == 1 ? (value >> 1) ^ 0xEDB8_8320 : value >> 1 }
    return value
  }

  /// Returns the CRC-32 (ISO 3309).
  public static func checksum(_ bytes: [UInt8]) -> UInt32 {
    var value = ~UInt32(0)
    for byte in bytes { value = (value >> 8) ^ table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] }
    return ~value
  }
}
