/// The colours that an image file states.
enum ImageColours: Equatable {
  /// The ICC profile decides; without one it is sRGB.
  case profile
  /// sRGB, whatever profile the file has.
  case standard
  case other(ColourSpace)

  /// The colours by numbers of ITU-T H.273.
  ///
  /// - Parameter notes: gets the reason why the stated colours are not used.
  init(primaries: Int, transfer: Int, isFullRange: Bool, notes: inout [String]) {
    // 2 means that the file does not tell.
    let space = ColourSpace(
      primaries: primaries == 2 ? 1 : primaries, transfer: transfer == 2 ? 13 : transfer, isFullRange: isFullRange)
    if let space {
      self = space.isStandard ? .standard : .other(space)
    } else {
      self = .standard
      notes.append("shown as sRGB: its colours (primaries \(primaries), transfer \(transfer)) are not supported")
    }
  }
}

extension ColourSpace {
  /// - Parameters:
  ///   - primaries: a ColourPrimaries value of ITU-T H.273.
  ///   - transfer: a TransferCharacteristics value.
  /// - Returns: nil for a space that is not supported.
  init?(primaries: Int, transfer: Int, isFullRange: Bool) {
    guard let primaries = UInt8(exactly: primaries).flatMap(Chromaticities.init(code:)) else { return nil }
    let function: Transfer
    switch transfer {
    // Players show the curve of cameras (BT.709, BT.601, BT.2020) as that of sRGB.
    case 1, 6, 14, 15, 13: function = .sRGB
    case 4: function = .power(2.2)
    case 5: function = .power(2.8)
    case 8: function = .power(1)
    case 16: function = .pq
    case 18: function = .hlg
    default: return nil
    }
    self.init(function, primaries, isFullRange: isFullRange)
  }
}
