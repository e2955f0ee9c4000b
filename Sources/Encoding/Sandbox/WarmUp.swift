// Work that a process would do at its first picture or archive, done before it forks: tables are computed, names looked up,
// functions bound. Each decoder would else do it again, which takes longer than a picture.

import FrameBatches

/// Images and archives of our own; the images are 16×16 pixels of one colour.
enum WarmUp {
  /// A decoder that has decoded one of each kind.
  package static func decoder(limits: Limits, background: Colour) -> PictureDecoder {
    ColourManagement.warmUp()
    let decoder = PictureDecoder(limits: limits, background: background)
    let look = FrameComposition(content: .image(nil), masks: .rectangles([]))
    // Should one fail, the strangers' files will say why.
    for image in [jpeg, png, webp] { _ = try? decoder.picture(from: [image], look) }
    for archive in [gzip, zstd] { unpack(archive) }
    return decoder
  }

  private static func unpack(_ archive: [UInt8]) {
    var rest = archive[...]
    let input = ArchiveInput { target in
      let part = rest.prefix(target.count)
      target.copyBytes(from: part)
      rest = rest.dropFirst(part.count)
      return part.count
    }
    try? Archive.unpack(input, name: "", limits: Limits()) { _ in }
  }

  /// A tar of one file, whose name is not ASCII.
  private static let gzip: [UInt8] = [
    31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 237, 211, 49, 10, 2, 49, 16, 64, 209, 169, 61, 69, 78, 144, 157, 209, 24, 43,
    209, 210, 210, 43, 4, 92, 20, 171, 101, 93, 33, 87, 242, 28, 123, 49, 13, 22, 98, 177, 101, 4, 217, 255, 154, 12,
    105, 166, 24, 190, 111, 124, 179, 63, 166, 124, 104, 211, 169, 237, 165, 10, 125, 155, 122, 85, 109, 243, 153,
    203, 191, 233, 210, 86, 226, 178, 252, 192, 253, 54, 164, 254, 181, 94, 230, 201, 214, 174, 75, 195, 101, 59, 62,
    252, 181, 59, 47, 4, 243, 178, 43, 103, 175, 188, 163, 68, 29, 67, 152, 238, 95, 237, 187, 127, 141, 209, 130,
    56, 165, 255, 234, 50, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 252, 181, 39, 149, 226, 139, 173, 0, 40, 0, 0,
  ]

  private static let zstd: [UInt8] = [
    40, 181, 47, 253, 4, 104, 149, 3, 0, 242, 196, 17, 26, 160, 57, 99, 255, 89, 85, 5, 244, 82, 162, 141, 125, 94,
    119, 238, 208, 3, 187, 191, 173, 73, 70, 171, 225, 24, 202, 243, 164, 108, 91, 123, 103, 172, 253, 171, 161, 192,
    2, 27, 5, 69, 5, 35, 29, 76, 195, 234, 107, 116, 210, 121, 84, 103, 82, 97, 131, 119, 93, 137, 253, 53, 62, 197,
    61, 100, 186, 228, 88, 106, 169, 14, 32, 96, 45, 187, 13, 11, 96, 190, 121, 112, 175, 175, 94, 176, 42, 87, 25,
    15, 96, 219, 250, 156, 62, 139, 105, 167, 130, 57, 37, 31, 147, 194, 6, 192, 138, 9, 50, 157, 58, 63, 237, 115,
    210,
  ]

  package static let jpeg: [UInt8] = [
    255, 216, 255, 224, 0, 16, 74, 70, 73, 70, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 255, 219, 0, 67, 0, 16, 11, 12, 14, 12, 10,
    16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61, 60, 57, 51, 56, 55, 64,
    72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87, 95, 98, 103, 104, 103, 62, 77, 113, 121, 112, 100, 120, 92,
    101, 103, 99, 255, 219, 0, 67, 1, 17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 255, 192, 0, 17, 8, 0, 16, 0, 16, 3, 1, 34, 0, 2, 17, 1,
    3, 17, 1, 255, 196, 0, 21, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 255, 196, 0, 20, 16, 1, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 196, 0, 20, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 255,
    196, 0, 20, 17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 218, 0, 12, 3, 1, 0, 2, 17, 3, 17, 0, 63, 0,
    152, 1, 71, 159, 255, 217,
  ]

  package static let png: [UInt8] = [
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 16, 0, 0, 0, 16, 8, 2, 0, 0, 0, 144, 145,
    104, 54, 0, 0, 0, 26, 73, 68, 65, 84, 120, 218, 99, 60, 17, 32, 199, 64, 10, 96, 98, 32, 17, 140, 106, 24, 213, 48,
    116, 52, 0, 0, 231, 219, 1, 86, 32, 76, 93, 163, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
  ]

  package static let webp: [UInt8] = [
    82, 73, 70, 70, 30, 0, 0, 0, 87, 69, 66, 80, 86, 80, 56, 76, 17, 0, 0, 0, 47, 15, 192, 3, 0, 7, 80, 168, 34, 215,
    163, 255, 129, 136, 232, 127, 0, 0,
  ]
}
