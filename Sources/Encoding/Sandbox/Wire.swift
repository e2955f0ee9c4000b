// The messages between a worker and the process that decodes for it: numbers of eight bytes, lists after their length.

import FileSystem
import FrameBatches

/// A part of a message; it takes eight bytes at least.
package protocol WireValue {
  /// - Throws: ``DecoderFailure/malformed`` when the message breaks off or makes no sense.
  init(from reader: inout WireReader) throws(DecoderFailure)
  func put(to writer: inout WireWriter)
}

package struct WireWriter {
  package private(set) var bytes: [UInt8] = []

  init() {}

  /// - Parameter capacity: the approximate number of bytes of the message.
  init(capacity: Int) { bytes.reserveCapacity(capacity) }

  /// The message after its length, as it is sent.
  var framed: [UInt8] {
    var head = WireWriter(capacity: bytes.count + 8)
    head.put(bytes)
    return head.bytes
  }

  package mutating func put<each Value: WireValue>(_ values: repeat each Value) { repeat (each values).put(to: &self) }

  package mutating func put(_ value: some Collection<UInt8>) {
    put(value.count)
    bytes += value
  }

  fileprivate mutating func append(_ value: UInt64) {
    unsafe withUnsafeBytes(of: value.littleEndian) { unsafe bytes.append(contentsOf: $0) }
  }
}

/// Reads a message, and trusts nothing in it.
package struct WireReader {
  private let bytes: [UInt8]
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The size of the whole message in bytes.
  var count: Int { bytes.count }
  fileprivate var unreadBytes: Int { bytes.count - offset }

  package mutating func read<Value: WireValue>(_: Value.Type = Value.self) throws(DecoderFailure) -> Value {
    try Value(from: &self)
  }

  fileprivate mutating func number() throws(DecoderFailure) -> UInt64 {
    guard unreadBytes >= 8 else { throw .malformed }
    defer { offset += 8 }
    return bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  fileprivate mutating func byteList() throws(DecoderFailure) -> ArraySlice<UInt8> { try bytes[byteRange()] }

  /// Passes a byte list to `body` without a copy.
  mutating func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
    let range = try byteRange()
    return try unsafe bytes.withUnsafeBytes { try unsafe body(UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  private mutating func byteRange() throws(DecoderFailure) -> Range<Int> {
    let count = try read(Int.self)
    guard count >= 0, count <= unreadBytes else { throw .malformed }
    defer { offset += count }
    return offset..<offset + count
  }

  /// Reads a text for logs and manifests, which is shortened to `limit` bytes.
  mutating func text(limit: Int) throws(DecoderFailure) -> String { try read(String.self).shortened(to: limit) }

  mutating func slot() throws(DecoderFailure) -> Int {
    let slot = try read(Int.self)
    guard PictureSlots.indices.contains(slot) else { throw .malformed }
    return slot
  }
}

// MARK: - Basic values

extension WireValue where Self: FixedWidthInteger {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    self.init(truncatingIfNeeded: try reader.number())
  }
  package func put(to writer: inout WireWriter) { writer.append(UInt64(truncatingIfNeeded: self)) }
}

extension Int: WireValue {}
extension Int64: WireValue {}

extension Double: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) { self.init(bitPattern: try reader.number()) }
  package func put(to writer: inout WireWriter) { writer.append(bitPattern) }
}

extension Bool: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) { self = try reader.number() != 0 }
  package func put(to writer: inout WireWriter) { writer.append(self ? 1 : 0) }
}

extension String: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    self.init(decoding: try reader.byteList(), as: UTF8.self)
  }
  package func put(to writer: inout WireWriter) { writer.put(Array(utf8)) }
}

extension Array: WireValue where Element: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    let count = try reader.read(Int.self)
    guard count >= 0, count <= reader.unreadBytes / 8 else { throw .malformed }
    self.init()
    for _ in 0..<count { append(try reader.read()) }
  }
  package func put(to writer: inout WireWriter) {
    writer.put(count)
    for element in self { writer.put(element) }
  }
}

/// Is sent as a list of one element or none.
extension Optional: WireValue where Wrapped: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) { self = try reader.read([Wrapped].self).first }
  package func put(to writer: inout WireWriter) { writer.put(map { [$0] } ?? []) }
}

extension WireValue where Self: RawRepresentable, RawValue: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    guard let value = Self(rawValue: try reader.read()) else { throw .malformed }
    self = value
  }
  package func put(to writer: inout WireWriter) { writer.put(rawValue) }
}

/// A byte list: a part of the message that it was read from, without a copy.
struct WireBytes {
  let bytes: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }
}

extension WireBytes: WireValue {
  init(from reader: inout WireReader) throws(DecoderFailure) { bytes = try reader.byteList() }
  func put(to writer: inout WireWriter) { writer.put(bytes) }
}

// MARK: - A frame, and the picture that it becomes

extension FrameComposition: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    let masks = try reader.read(Masks.self)
    switch try reader.read(Kind.self) {
    case .image: self.init(content: .image(try reader.read()), masks: masks)
    case .layers:
      let size = try reader.read(PixelSize.self)
      self.init(content: .layers(try reader.read(), width: size.width, height: size.height), masks: masks)
    case .picture: self.init(content: .picture(try reader.read()), masks: masks)
    }
  }

  private enum Kind: Int, WireValue { case image, layers, picture }

  package func put(to writer: inout WireWriter) {
    switch content {
    case .image(let raw): writer.put(masks, Kind.image, raw)
    case .layers(let layers, let width, let height): writer.put(masks, Kind.layers, width, height, layers)
    case .picture(let index): writer.put(masks, Kind.picture, index)
    }
  }
}

extension Layer: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(
      raw: reader.read(), x: reader.read(), y: reader.read(), size: reader.read(), opacity: reader.read(),
      masks: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(raw, x, y, size, opacity, masks) }
}

extension RawPixels.Format: WireValue {}
extension RawPixels.Alpha: WireValue {}

extension RawPixels: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(
      format: reader.read(), alpha: reader.read(), size: reader.read(), bytesPerRow: reader.read(),
      alphaBytesPerRow: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(format, alpha, size, bytesPerRow, alphaBytesPerRow) }
}

extension PixelSize: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(width: reader.read(), height: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(width, height) }
}

extension Colour: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    let value = UInt32(truncatingIfNeeded: try reader.read(Int.self))
    self.init(red: UInt8(value >> 16 & 255), green: UInt8(value >> 8 & 255), blue: UInt8(value & 255))
  }
  package func put(to writer: inout WireWriter) { writer.put(Int(red) << 16 | Int(green) << 8 | Int(blue)) }
}

extension Mask: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(
      x: reader.read(), y: reader.read(), width: reader.read(), height: reader.read(), colour: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(x, y, width, height, colour) }
}

extension Masks: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    self = try reader.read(Bool.self) ? .everything(because: try reader.read()) : .rectangles(try reader.read())
  }

  package func put(to writer: inout WireWriter) {
    switch self {
    case .everything(let reason): writer.put(true, reason)
    case .rectangles(let list): writer.put(false, list)
    }
  }
}

extension PlaneLayout: WireValue {
  /// Refuses a picture that is not within limits, or not in a memory of so many bytes.
  func require(_ limits: Limits, bytes: Int) throws(DecoderFailure) {
    guard size.isWithin(limits), isWithin(bytes) else { throw .malformed }
  }

  package init(from reader: inout WireReader) throws(DecoderFailure) {
    let (size, bytes): (PixelSize, Int) = (try reader.read(), try reader.read())
    // Sums and products of such sizes do not overflow.
    guard max(size.width, size.height) <= Int32.max, min(size.width, size.height) > 0 else { throw .malformed }
    var planes: [(offset: Int, stride: Int)] = []
    for _ in 0..<3 { planes.append((try reader.read(), try reader.read())) }
    self.init(size: size, planes, bytes: bytes)
  }

  package func put(to writer: inout WireWriter) {
    writer.put(size, bytes)
    for plane in planes { writer.put(plane.offset, plane.stride) }
  }
}

extension DecodingWork: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(decoding: reader.read(), converting: reader.read())
  }
  package func put(to writer: inout WireWriter) { writer.put(decoding, converting) }
}

extension Profile.Span: WireValue {
  package init(from reader: inout WireReader) throws(DecoderFailure) {
    try self.init(cpuNs: reader.read(), wallNs: reader.read())
    // At most one hour.
    guard [cpuNs, wallNs].allSatisfy({ (0...3_600_000_000_000).contains($0) }) else { throw .malformed }
  }
  package func put(to writer: inout WireWriter) { writer.put(cpuNs, wallNs) }
}
