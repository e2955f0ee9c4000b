// The chunks of a PNG (ISO/IEC 15948, 5.3) that a picture is made of. A decoder unpacks and sorts all others, too: a file of
// a megabyte can hold gigabytes of text.

enum PNGChunks {
  /// What a colour profile may have, compressed; unpacked that is a thousand times as much at most.
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
    // What is too short for a chunk is for the decoder to find wrong.
    result?.append(contentsOf: file[offset...])
    return (result ?? file, lostProfile)
  }
}
