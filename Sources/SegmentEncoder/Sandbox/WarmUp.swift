// What a process would do at its first picture, done before it divides: tables are computed, names looked up, functions bound.
// Each decoder would else do it again, which takes longer than a picture.

/// Images of our own, 16×16 pixels of one colour.
enum WarmUp {
  /// A decoder that has decoded one of each kind.
  static func decoder(limits: Limits, background: Colour) -> PictureDecoder {
    ColourManagement.warmUp()
    let decoder = PictureDecoder(limits: limits, background: background)
    let look = Look(content: .image(nil), masks: .rectangles([]))
    // Should one fail, the strangers' images will say why.
    for image in [jpeg, png, webp] { _ = try? decoder.picture(from: [image], look) }
    return decoder
  }

  static let jpeg: [UInt8] = [
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

  static let png: [UInt8] = [
    137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 16, 0, 0, 0, 16, 8, 2, 0, 0, 0, 144, 145,
    104, 54, 0, 0, 0, 26, 73, 68, 65, 84, 120, 218, 99, 60, 17, 32, 199, 64, 10, 96, 98, 32, 17, 140, 106, 24, 213, 48,
    116, 52, 0, 0, 231, 219, 1, 86, 32, 76, 93, 163, 0, 0, 0, 0, 73, 69, 78, 68, 174, 66, 96, 130,
  ]

  static let webp: [UInt8] = [
    82, 73, 70, 70, 30, 0, 0, 0, 87, 69, 66, 80, 86, 80, 56, 76, 17, 0, 0, 0, 47, 15, 192, 3, 0, 7, 80, 168, 34, 215,
    163, 255, 129, 136, 232, 127, 0, 0,
  ]
}
