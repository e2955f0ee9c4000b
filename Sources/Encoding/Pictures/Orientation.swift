// The orientation of an image: EXIF's tag 0x0112 (CIPA DC-008, 4.6.4).

import FrameBatches

/// Mirrored first, then turned.
struct Orientation: Equatable {
  /// Left and right exchanged.
  let isMirrored: Bool
  /// Clockwise.
  let quarterTurns: Int

  static let upright = Orientation(isMirrored: false, quarterTurns: 0)
}

extension Orientation {
  /// - Parameter tag: EXIF's value, 1 to 8; any other value means upright.
  private init(tag: Int) {
    let turns = [1: 0, 2: 0, 3: 2, 4: 2, 5: 3, 6: 1, 7: 1, 8: 3][tag] ?? 0
    self.init(isMirrored: [2, 4, 5, 7].contains(tag), quarterTurns: turns)
  }

  /// The orientation of an image file, which is parsed when it is a JPEG; upright when the file has no valid one.
  init(of file: [UInt8], kind: ImageKind, jpeg: JPEGFile?) {
    self.init(tag: ExifData(of: file, kind: kind, jpeg: jpeg)?.short(0x0112, in: .image) ?? 1)
  }

  /// The turns of a HEIF file, one after another.
  init(_ turns: [HEIFPicture.Turn]) {
    self = turns.reduce(.upright) { orientation, turn in
      let quarters = orientation.quarterTurns
      switch turn {
      case .quarters(let anticlockwise):
        return Orientation(isMirrored: orientation.isMirrored, quarterTurns: (quarters + 4 - anticlockwise) % 4)
      // Mirroring after a turn is turning the other way after mirroring.
      case .leftAndRightExchanged:
        return Orientation(isMirrored: !orientation.isMirrored, quarterTurns: (4 - quarters) % 4)
      case .topAndBottomExchanged:
        return Orientation(isMirrored: !orientation.isMirrored, quarterTurns: (6 - quarters) % 4)
      }
    }
  }
}
