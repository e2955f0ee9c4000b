// The chunks of a PNG (ISO/IEC 15948, 5.3) that a picture is made of. Texts and profiles are compressed, and a decoder
// unpacks all of them: a file of a megabyte can hold gigabytes.

enum PNGChunks {
  /// What a colour profile may have, compressed; unpacked that is a thousand times as much at most.
  private static let profileBytes = 64 << 10

  /// The same picture without what could be too large, and whether that was its colour profile.
  static func bounded(_ file: [UInt8]) -> (file: [UInt8], lostProfile: Bool) {
    var result: [UInt8]?
    var lostProfile = false
    var offset = 8
    while offset + 12 <= file.count {
      let size = file[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
      let end = min(offset + 12 + size, file.count)
      let name = String(decoding: file[offset + 4..<offset + 8], as: UTF8.self)
      let isProfile = name == "iCCP" && size > profileBytes
      if isProfile || ["zTXt", "iTXt"].contains(name) {
        lostProfile = lostProfile || isProfile
        result = result ?? Array(file[..<offset])
      } else {
        result?.append(contentsOf: file[offset..<end])
      }
      offset = end
    }
    // What comes behind, which is too short for a chunk, is for the decoder to find wrong.
    result?.append(contentsOf: file[offset...])
    return (result ?? file, lostProfile)
  }
}
