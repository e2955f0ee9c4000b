import CLinux
import FileSystem

/// The screen at the end of a batch, and since when it has looked like that.
package struct StillScreen: Sendable, Equatable {
  /// The first of the last captures of the batch that look the same, in unix milliseconds.
  package let sinceMs: Int64
  /// The last capture of the batch, in unix milliseconds.
  package let untilMs: Int64
  /// Whether all captures of the batch look the same.
  package let isWhole: Bool
  /// Equal for equal pictures.
  package let picture: String
  /// Whether all of its pixels have one colour.
  package let isBlank: Bool

  package init(sinceMs: Int64, untilMs: Int64, isWhole: Bool, picture: String, isBlank: Bool) {
    (self.sinceMs, self.untilMs, self.isWhole) = (sinceMs, untilMs, isWhole)
    (self.picture, self.isBlank) = (picture, isBlank)
  }
}

extension Picture {
  /// A digest of the size and all pixels.
  var digest: String {
    var sum = SHA256()
    sum.update("\(width) \(height)\n")
    _ = unsafe allRows { row, _ in
      unsafe sum.update(row)
      return true
    }
    return sum.finish()
  }

  /// Whether all pixels have one colour.
  var isBlank: Bool {
    // Each sample equals the one before it, and each row begins as the first one does.
    unsafe allRows { row, first in
      unsafe row[0] == first && memcmp(row.baseAddress!, row.baseAddress! + 1, row.count - 1) == 0
    }
  }

  /// Whether `body` is true for all rows of all planes. It gets the row, and the first sample of the plane.
  private func allRows(_ body: (UnsafeRawBufferPointer, UInt8) -> Bool) -> Bool {
    unsafe planes.enumerated().allSatisfy { index, plane in
      let (shift, (start, stride)) = unsafe (index == 0 ? 0 : 1, plane)
      return (0..<codedHeight >> shift).allSatisfy { row in
        unsafe body(UnsafeRawBufferPointer(start: start + row * stride, count: codedWidth >> shift), start.pointee)
      }
    }
  }
}
