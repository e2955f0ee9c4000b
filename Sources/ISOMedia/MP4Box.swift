/// Bytes of an ISO base media file, written front to back (ISO/IEC 14496-12, 4.2).
package struct MP4Box {
  package private(set) var bytes: [UInt8] = []

  package init() {}

  /// Writes a box: its size, its type, its body.
  package mutating func box(_ type: String, _ body: (inout MP4Box) -> Void) {
    let start = bytes.count
    u32(0)
    ascii(type)
    body(&self)
    let size = UInt32(bytes.count - start)
    for index in 0..<4 { bytes[start + index] = UInt8(truncatingIfNeeded: size >> (24 - 8 * index)) }
  }

  /// Writes a box with version and flags.
  mutating func fullBox(_ type: String, version: UInt8 = 0, flags: UInt32 = 0, _ body: (inout MP4Box) -> Void) {
    box(type) { box in
      box.u32(UInt32(version) << 24 | flags)
      body(&box)
    }
  }

  mutating func u8(_ value: UInt8) { bytes.append(value) }
  mutating func u16(_ value: UInt16) { bytes.append(bigEndian: value) }
  package mutating func u32(_ value: UInt32) { bytes.append(bigEndian: value) }
  mutating func u32(_ values: UInt32...) { for value in values { u32(value) } }
  package mutating func u64(_ value: UInt64) { bytes.append(bigEndian: value) }
  package mutating func ascii(_ text: String) { bytes.append(contentsOf: text.utf8) }
  package mutating func append(_ data: some Sequence<UInt8>) { bytes.append(contentsOf: data) }
  package mutating func zeros(_ count: Int) { bytes.append(contentsOf: repeatElement(0, count: count)) }
}

extension [UInt8] {
  /// Appends a number, its highest byte first.
  mutating func append(bigEndian value: some FixedWidthInteger) {
    unsafe Swift.withUnsafeBytes(of: value.bigEndian) { unsafe append(contentsOf: $0) }
  }
}
