/// How the YUV of a video is made of RGB, in the numbers of ISO/IEC 23091-2.
package struct VideoColour: Sendable, Equatable {
  package let primaries: Int
  package let transfer: Int
  package let matrix: Int
  package let isFullRange: Bool

  package init(primaries: Int, transfer: Int, matrix: Int, isFullRange: Bool) {
    (self.primaries, self.transfer, self.matrix) = (primaries, transfer, matrix)
    self.isFullRange = isFullRange
  }

  /// The colours of our encoder: BT.709, sRGB, BT.601, limited range.
  package static let screen = VideoColour(primaries: 1, transfer: 13, matrix: 6, isFullRange: false)
}

/// The coding of video samples.
package struct VideoDescription: Equatable {
  /// Pixels as coded.
  package let width: Int
  package let height: Int
  package let parameterSets: ParameterSets
  /// nil if only the parameter sets tell it.
  package let colour: VideoColour?
  /// Whether key frames carry their parameter sets too, which ISO/IEC 14496-15, 5.4.2 allows `avc3` only.
  package let isInBand: Bool

  package init(
    width: Int, height: Int, parameterSets: ParameterSets, colour: VideoColour? = .screen, isInBand: Bool = false
  ) {
    self.width = width
    self.height = height
    self.parameterSets = parameterSets
    self.colour = colour
    self.isInBand = isInBand
  }

  /// The type of its sample entry (ISO/IEC 14496-15, 5.4.2).
  fileprivate var entry: String { isInBand ? "avc3" : "avc1" }

  /// The `codecs` parameter of RFC 6381.
  package var codec: String { "\(entry).\(parameterSets.profileAndLevel)" }
}

/// The entries of `stsd`.
extension MP4Box {
  mutating func videoDescription(_ description: VideoDescription) {
    box(description.entry) { entry in
      entry.zeros(6)
      entry.u16(1)  // data reference
      entry.zeros(16)
      entry.u16(UInt16(description.width))
      entry.u16(UInt16(description.height))
      entry.u32(0x48_0000, 0x48_0000, 0)  // 72 × 72 dpi
      entry.u16(1)  // frames a sample
      entry.zeros(32)  // compressor's name
      entry.u16(24)  // depth
      entry.u16(0xFFFF)
      entry.box("avcC") { $0.append(description.parameterSets.configuration) }
      if let colour = description.colour {
        entry.box("colr") { box in
          box.ascii("nclx")
          for number in [colour.primaries, colour.transfer, colour.matrix] {
            box.u16(UInt16(truncatingIfNeeded: number))
          }
          box.u8(colour.isFullRange ? 0x80 : 0)
        }
      }
      entry.box("pasp") { $0.u32(1, 1) }
    }
  }

  /// `tx3g` (3GPP TS 26.245, 5.16): timed text with a plain style.
  mutating func textDescription() {
    box("tx3g") { entry in
      entry.zeros(6)
      entry.u16(1)  // data reference
      entry.u32(0)  // display flags
      entry.append([1, 0xFF])  // centred, at the bottom
      entry.u32(0)  // background
      entry.zeros(8)  // text box
      entry.u32(0)  // the style's characters
      entry.u16(1)  // font
      entry.append([0, 16])  // face and size that readers take for no style at all
      entry.u32(0xFFFF_FFFF)
      entry.box("ftab") { box in
        box.u16(1)
        box.u16(1)
        box.u8(5)
        box.ascii("Arial")
      }
    }
  }
}
