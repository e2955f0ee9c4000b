// How a picture lies in memory that a worker and its decoder share.

import FrameBatches

/// Memory that others see, where a picture is decoded to if that saves a copy.
package final class SharedPictureBuffer {
  package let memory: UnsafeMutableBufferPointer<UInt8>
  /// How much of it, from its start, has been written by now; in bytes.
  package var used = 0
  /// Gets so many bytes, from its start, ready to be written: all pages at once rather than by a fault each.
  let prepare: (Int) -> Void

  init(_ memory: UnsafeMutableBufferPointer<UInt8>, prepare: @escaping (Int) -> Void = { _ in }) {
    self.memory = memory
    self.prepare = prepare
  }
}

/// Where the planes of a picture lie in memory, in bytes from its start.
package struct PlaneLayout {
  struct Plane {
    package let offset: Int
    /// From row to row.
    package let stride: Int
    package let columns: Int
    package let rows: Int
  }

  /// Of the picture as captured.
  package let size: PixelSize
  /// Y, Cb, Cr; of even sides.
  let planes: [Plane]
  /// All that has been written, with what is beyond the edges.
  package let bytes: Int

  init(size: PixelSize, _ places: [(offset: Int, stride: Int)], bytes: Int) {
    self.size = size
    self.bytes = bytes
    planes = places.enumerated().map { index, place in
      let half = index == 0 ? 1 : 2
      return Plane(
        offset: place.offset, stride: place.stride, columns: (size.width + size.width % 2) / half,
        rows: (size.height + size.height % 2) / half)
    }
  }

  /// One plane behind the other.
  init(withoutGaps size: PixelSize, used: Int) {
    let (width, height) = (size.width + size.width % 2, size.height + size.height % 2)
    self.init(
      size: size, [(0, width), (width * height, width / 2), (width * height * 5 / 4, width / 2)],
      bytes: max(used, width * height * 3 / 2))
  }

  /// Whether all of it lies within so many bytes; for sizes and places that a stranger may have named.
  func isWithin(_ memory: Int) -> Bool {
    planes.count == 3 && (0...memory).contains(bytes)
      && planes.allSatisfy { plane in
        (0...bytes).contains(plane.offset) && (plane.columns...max(plane.columns, bytes)).contains(plane.stride)
          && plane.stride <= Int32.max && plane.offset + plane.stride * plane.rows <= bytes
      }
  }
}
