// What passes between a worker and the process that decodes for it: numbers of eight bytes, lists behind their length.

import FileSystem
import FrameBatches
import JSON

/// Written by one side.
package struct WireWriter {
  package private(set) var bytes: [UInt8] = []

  init() {}

  /// - Parameter capacity: bytes that will be written, roughly.
  init(capacity: Int) { bytes.reserveCapacity(capacity) }

  /// What has been written, behind its own length.
  var framed: [UInt8] {
    var head = WireWriter(capacity: bytes.count + 8)
    head.put(bytes)
    return head.bytes
  }

  package mutating func put(_ value: Int) {
    withUnsafeBytes(of: Int64(value).littleEndian) { bytes.append(contentsOf: $0) }
  }
  package mutating func put(_ value: Double) { put(Int(truncatingIfNeeded: value.bitPattern)) }
  package mutating func put(_ value: Bool) { put(value ? 1 : 0) }
  package mutating func put(_ value: [UInt8]) {
    put(value.count)
    bytes += value
  }
  package mutating func put(_ value: String) { put(Array(value.utf8)) }
  package mutating func put<Element>(_ list: [Element], _ body: (inout WireWriter, Element) -> Void) {
    put(list.count)
    for element in list { body(&self, element) }
  }
  package mutating func put<Value>(_ value: Value?, _ body: (inout WireWriter, Value) -> Void) {
    put(value.map { [$0] } ?? [], body)
  }
}

/// Read by the other, which trusts nothing: what breaks off or makes no sense is an error.
package struct WireReader {
  package struct Nonsense: Error {}

  private let bytes: [UInt8]
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Of the whole message, in bytes.
  package var count: Int { bytes.count }

  mutating func int() throws(Nonsense) -> Int {
    guard bytes.count - offset >= 8 else { throw Nonsense() }
    let value = bytes[offset..<offset + 8].reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    offset += 8
    return Int(Int64(bitPattern: value))
  }
  mutating func double() throws(Nonsense) -> Double { Double(bitPattern: UInt64(bitPattern: Int64(try int()))) }
  package mutating func bool() throws(Nonsense) -> Bool { try int() != 0 }
  mutating func byteList() throws(Nonsense) -> [UInt8] {
    let count = try int()
    guard count >= 0, count <= bytes.count - offset else { throw Nonsense() }
    defer { offset += count }
    return Array(bytes[offset..<offset + count])
  }
  /// Lends a byte list, which is not copied.
  mutating func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
    let count = try int()
    guard count >= 0, count <= bytes.count - offset else { throw Nonsense() }
    defer { offset += count }
    return try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
  }
  package mutating func string() throws(Nonsense) -> String { String(decoding: try byteList(), as: UTF8.self) }
  package mutating func list<Element>(_ body: (inout WireReader) throws(Nonsense) -> Element) throws(Nonsense)
    -> [Element]
  {
    let count = try int()
    // Every element has a number at least.
    guard count >= 0, count <= (bytes.count - offset) / 8 else { throw Nonsense() }
    var result: [Element] = []
    for _ in 0..<count { result.append(try body(&self)) }
    return result
  }
  mutating func optional<Value>(_ body: (inout WireReader) throws(Nonsense) -> Value) throws(Nonsense) -> Value? {
    try list(body).first
  }
  package mutating func choice<Value: RawRepresentable<Int>>(_: Value.Type) throws(Nonsense) -> Value {
    guard let value = Value(rawValue: try int()) else { throw Nonsense() }
    return value
  }
  package mutating func choice<Value>(of values: [Value]) throws(Nonsense) -> Value {
    let index = try int()
    guard values.indices.contains(index) else { throw Nonsense() }
    return values[index]
  }
}

// MARK: - What is sent

extension WireWriter {
  package mutating func put(_ look: Look) {
    put(look.masks)
    switch look.content {
    case .image(let raw):
      put(0)
      put(raw) { $0.put($1) }
    case .layers(let layers, let width, let height):
      put(1)
      put(width)
      put(height)
      put(layers) { writer, layer in
        writer.put(layer.raw) { $0.put($1) }
        writer.put(layer.x)
        writer.put(layer.y)
        writer.put(layer.size) { $0.put($1) }
        writer.put(layer.opacity)
        writer.put(layer.masks)
      }
    }
  }

  package mutating func put(_ work: DecodingWork) {
    for span in [work.decoding, work.converting] {
      put(Int(span.cpuNs))
      put(Int(span.wallNs))
    }
  }

  package mutating func put(_ size: PixelSize) {
    put(size.width)
    put(size.height)
  }

  package mutating func put(_ layout: PlaneLayout) {
    put(layout.size)
    put(layout.bytes)
    for plane in layout.planes {
      put(plane.offset)
      put(plane.stride)
    }
  }

  package mutating func put(_ raw: RawPixels) {
    put(RawPixels.Format.allCases.firstIndex(of: raw.format) ?? -1)
    put(RawPixels.Alpha.allCases.firstIndex(of: raw.alpha) ?? -1)
    put(raw.size)
    put(raw.bytesPerRow)
    put(raw.alphaBytesPerRow)
  }

  package mutating func put(_ colour: Colour) { put(Int(colour.red) << 16 | Int(colour.green) << 8 | Int(colour.blue)) }

  package mutating func put(_ masks: Masks) {
    switch masks {
    case .everything(let reason):
      put(1)
      put(reason)
    case .rectangles(let list):
      put(0)
      put(list) { writer, mask in
        for value in [mask.x, mask.y, mask.width, mask.height] { writer.put(value) }
        writer.put(mask.colour)
      }
    }
  }
}

extension WireReader {
  package mutating func look() throws(Nonsense) -> Look {
    let masks = try masks()
    if try !bool() {
      return Look(content: .image(try optional { reader throws(Nonsense) in try reader.raw() }), masks: masks)
    }
    let (width, height) = (try int(), try int())
    let layers = try list { reader throws(Nonsense) in
      Layer(
        raw: try reader.optional { reader throws(Nonsense) in try reader.raw() }, x: try reader.int(),
        y: try reader.int(), size: try reader.optional { reader throws(Nonsense) in try reader.size() },
        opacity: try reader.double(), masks: try reader.masks())
    }
    return Look(content: .layers(layers, width: width, height: height), masks: masks)
  }

  /// Whatever it says it took: an hour at most.
  package mutating func work() throws(Nonsense) -> DecodingWork {
    func span(_ reader: inout WireReader) throws(Nonsense) -> Profile.Span {
      let numbers = (try reader.int(), try reader.int())
      guard (0...3_600_000_000_000).contains(numbers.0), (0...3_600_000_000_000).contains(numbers.1) else {
        throw Nonsense()
      }
      return Profile.Span(cpuNs: Int64(numbers.0), wallNs: Int64(numbers.1))
    }
    return DecodingWork(decoding: try span(&self), converting: try span(&self))
  }

  package mutating func size() throws(Nonsense) -> PixelSize { PixelSize(width: try int(), height: try int()) }

  /// Of a picture within limits, in so many bytes.
  package mutating func layout(_ limits: Limits, bytes: Int) throws(Nonsense) -> PlaneLayout {
    let size = try size()
    guard size.isWithin(limits) else { throw Nonsense() }
    let used = try int()
    var places: [(offset: Int, stride: Int)] = []
    for _ in 0..<3 { places.append((try int(), try int())) }
    let layout = PlaneLayout(size: size, places, bytes: used)
    guard layout.isWithin(bytes) else { throw Nonsense() }
    return layout
  }

  package mutating func raw() throws(Nonsense) -> RawPixels {
    RawPixels(
      format: try choice(of: RawPixels.Format.allCases), alpha: try choice(of: RawPixels.Alpha.allCases),
      size: try size(), bytesPerRow: try int(), alphaBytesPerRow: try int())
  }

  package mutating func colour() throws(Nonsense) -> Colour {
    let value = UInt32(truncatingIfNeeded: try int())
    return Colour(red: UInt8(value >> 16 & 255), green: UInt8(value >> 8 & 255), blue: UInt8(value & 255))
  }

  mutating func masks() throws(Nonsense) -> Masks {
    if try bool() { return .everything(because: try string()) }
    return .rectangles(
      try list { reader throws(Nonsense) in
        Mask(
          x: try reader.double(), y: try reader.double(), width: try reader.double(), height: try reader.double(),
          colour: try reader.colour())
      })
  }
}
