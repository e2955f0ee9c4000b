@testable import Encoding
@testable import FrameBatches
@testable import JSON

/// Reads messages that a worker gets from a compromised decoder, and messages that a decoder gets from a worker.
enum WireFuzzing {
  static func read(_ bytes: [UInt8]) {
    let (limits, memory) = (FuzzTarget.limits, 200_000)
    var reader = WireReader(bytes)
    if let layout = try? reader.read(PlaneLayout.self), (try? layout.require(limits, bytes: memory)) != nil {
      require(layout.size.isWithin(limits), "a picture within limits")
      require((0...memory).contains(layout.bytes), "no more bytes than the buffer has")
      for plane in layout.planes {
        require(plane.offset >= 0 && plane.stride >= plane.columns && plane.stride <= Int32.max, "a valid stride")
        require(plane.offset + plane.stride * (plane.rows - 1) + plane.columns <= memory, "a plane inside the buffer")
      }
      _ = try? reader.read([String].self)
    }
    reader = WireReader(bytes)
    guard let look = try? reader.read(FrameComposition.self) else { return }
    var writer = WireWriter()
    writer.put(look)
    var again = WireReader(writer.bytes)
    // NaN is not equal to itself, but its bits are equal.
    var repeated = WireWriter()
    if let same = try? again.read(FrameComposition.self) { repeated.put(same) }
    require(repeated.bytes == writer.bytes, "the message read can be written again")
  }
}
