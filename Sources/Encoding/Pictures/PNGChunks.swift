// The chunks of a PNG (ISO/IEC 15948, 5.3) that are needed for the picture. A decoder would unpack and sort all others, too: a
// file of a megabyte can hold gigabytes of text.

import FrameBatches

enum PNGChunks {
  /// Maximum compressed size of a colour profile, which unpacks to at most a thousand times as much.
  private static let profileBytes = 64 << 10
  private static let essential = ["IHDR", "PLTE", "tRNS", "IDAT", "IEND", "iCCP"]

  /// Returns the file with the chunks that are needed for the picture, and the reason when it has lost its colour profile.
  ///
  /// - Parameter damage: the reason to leave out the profile in any case.
  static func essential(
    of file: [UInt8], withoutProfile damage: String? = nil
  ) -> (file: [UInt8], lostProfile: String?) {
    var result: [UInt8]?
    var hasProfile = false
    var lostProfile: String?
    var end = 8
    for chunk in ImageChunk.chunks(of: file, .png, from: end) {
      let isProfile = chunk.name == "iCCP"
      if !essential.contains(chunk.name) || isProfile && (hasProfile || chunk.size > profileBytes || damage != nil) {
        if isProfile && !hasProfile { lostProfile = lostProfile ?? damage ?? "too large" }
        result = result ?? Array(file[..<end])
      } else {
        hasProfile = hasProfile || isProfile
        result?.append(contentsOf: file[chunk.range])
      }
      end = chunk.range.upperBound
    }
    // The decoder refuses files that end within a chunk.
    result?.append(contentsOf: file[end...])
    return (result ?? file, lostProfile)
  }

  /// Returns the transparent grey in 8 bits of a grey picture with fewer than 8 bits a sample (11.3.2.1), and nil for any other
  /// picture. libavcodec ignores transparency in these files.
  static func transparentGrey(of file: [UInt8]) -> UInt8? {
    // IHDR comes first, with the depth and the kind of colour.
    guard file.count > 33, [1, 2, 4].contains(file[24]), file[25] == 0 else { return nil }
    let maximum = UInt8(1) << file[24] - 1
    for chunk in ImageChunk.chunks(of: file, .png, from: 33) {
      if ["IDAT", "IEND"].contains(chunk.name) { return nil }
      // Only the low bits count.
      if chunk.name == "tRNS", chunk.size == 2, let low = chunk.body?.last { return (low & maximum) * (255 / maximum) }
    }
    return nil
  }
}
