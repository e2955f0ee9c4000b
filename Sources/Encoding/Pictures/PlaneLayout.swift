// The layout of a picture in memory that a worker and its decoder share.

import FrameBatches

/// Shared memory that a picture is decoded into if that saves a copy.
/// It is safe: only the memory itself is unsafe. Its ``PictureSlots`` keep it mapped.
@safe package final class SharedPictureBuffer {
  let memory: UnsafeMutableBufferPointer<UInt8>
  /// Bytes written so far, from the start.
  var used = 0
  /// Maps the pages of so many bytes from the start that exist, sixteen at a time.
  let prepare: (Int) -> Void

  init(_ memory: UnsafeMutableBufferPointer<UInt8>, prepare: @escaping (Int) -> Void = { _ in }) {
    unsafe self.memory = memory
    self.prepare = prepare
  }
}

/// The positions of a picture's planes in memory.
package struct PlaneLayout {
  struct Plane {
    /// In bytes from the start of the memory.
    let offset: Int
    /// Bytes from row to row.
    let stride: Int
    let columns: Int
    let rows: Int
  }

  /// The size of the picture as captured.
  let size: PixelSize
  /// Y, Cb, Cr; of even sides.
  let planes: [Plane]
  /// Bytes written, including those beyond the edges of the picture.
  let bytes: Int

  init(size: PixelSize, _ planes: [(offset: Int, stride: Int)], bytes: Int) {
    self.size = size
    self.bytes = bytes
    self.planes = planes.enumerated().map { index, plane in
      let half = index == 0 ? 1 : 2
      return Plane(
        offset: plane.offset, stride: plane.stride, columns: (size.width + size.width % 2) / half,
        rows: (size.height + size.height % 2) / half)
    }
  }

  /// A layout of planes that follow one another.
  init(withoutGaps size: PixelSize, used: Int) {
    let (width, height) = (size.width + size.width % 2, size.height + size.height % 2)
    self.init(
      size: size, [(0, width), (width * height, width / 2), (width * height * 5 / 4, width / 2)],
      bytes: max(used, width * height * 3 / 2))
  }

  /// Whether the layout lies within so many bytes. Its numbers may come from a compromised decoder.
  func isWithin(_ memory: Int) -> Bool {
    planes.count == 3 && (0...memory).contains(bytes)
      && planes.allSatisfy { plane in
        (0...bytes).contains(plane.offset) && (plane.columns...max(plane.columns, bytes)).contains(plane.stride)
          && plane.stride <= Int32.max && plane.offset + plane.stride * plane.rows <= bytes
      }
  }
}
