@testable import Encoding
@testable import FrameBatches
@testable import JSON

/// Messages that a worker reads from a decoder under attack, and a decoder from a worker.
enum WireFuzzing {
  static func read(_ bytes: [UInt8]) {
    let (limits, memory) = (FuzzTarget.limits, 200_000)
    var reader = WireReader(bytes)
    if let layout = try? reader.layout(limits, bytes: memory) {
      require(layout.size.isWithin(limits), "a picture within limits")
      require((0...memory).contains(layout.bytes), "no more than there is")
      for plane in layout.planes {
        require(plane.offset >= 0 && plane.stride >= plane.columns && plane.stride <= Int32.max, "rows that lie there")
        require(plane.offset + plane.stride * (plane.rows - 1) + plane.columns <= memory, "a plane inside")
      }
      _ = try? reader.read([String].self)
    }
    reader = WireReader(bytes)
    guard let look = try? reader.read(FrameComposition.self) else { return }
    var writer = WireWriter()
    writer.put(look)
    var again = WireReader(writer.bytes)
    // NaN is not equal to itself; its bits are.
    var repeated = WireWriter()
    if let same = try? again.read(FrameComposition.self) { repeated.put(same) }
    require(repeated.bytes == writer.bytes, "what is read can be sent")
  }
}
