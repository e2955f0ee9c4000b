// The chunks of a PNG (ISO/IEC 15948, 5.3) that a picture is made of. A decoder unpacks and sorts all others, too: a file of
// a megabyte can hold gigabytes of text.

enum PNGChunks {
  /// Maximum compressed size of a colour profile; unpacked that is a thousand times as much at most.
  private static let profileBytes = 64 << 10
  private static let essential = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND", "iCCP"]

  /// The same picture of nothing but what it is made of, and why it has lost its colour profile.
  ///
  /// - Parameter damage: why the profile is left out in any case.
  static func essential(of file: [UInt8], withoutProfile damage: String? = nil) -> (file: [UInt8], lostProfile: String?)
  {
    var result: [UInt8]?
    var hasProfile = false
    var lostProfile: String?
    var offset = 8
    while offset + 12 <= file.count {
      let size = file[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
      let end = min(offset + 12 + size, file.count)
      let name = String(decoding: file[offset + 4..<offset + 8], as: UTF8.self)
      let isProfile = name == "iCCP"
      if !essential.contains(name) || isProfile && (hasProfile || size > profileBytes || damage != nil) {
        if isProfile && !hasProfile { lostProfile = lostProfile ?? damage ?? "too large" }
        result = result ?? Array(file[..<offset])
      } else {
        hasProfile = hasProfile || isProfile
        result?.append(contentsOf: file[offset..<end])
      }
      offset = end
    }
    // The decoder refuses files that are too short for a chunk.
    result?.append(contentsOf: file[offset...])
    return (result ?? file, lostProfile)
  }

  /// The grey that is transparent, as 8 bits, in a grey picture of fewer than 8 bits a sample (11.3.2.1); nil in any other. For
  /// these libavcodec leaves transparency out.
  static func transparentGrey(of file: [UInt8]) -> UInt8? {
    // The depth and the kind of colour in IHDR, which comes first.
    guard file.count > 33, [1, 2, 4].contains(file[24]), file[25] == 0 else { return nil }
    let most = UInt8(1) << file[24] - 1
    var offset = 33
    while offset + 12 <= file.count {
      let size = file[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
      switch String(decoding: file[offset + 4..<offset + 8], as: UTF8.self) {
      case "tRNS" where size == 2 && offset + 14 <= file.count:
        // Only the low bits count.
        return (file[offset + 9] & most) * (255 / most)
      case "IDAT", "IEND": return nil
      default: offset += 12 + size
      }
    }
    return nil
  }
}
