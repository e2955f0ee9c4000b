// Does the work of a first picture and a first archive before decoders are forked: it computes tables, looks up names and binds
// functions. Otherwise each decoder would do it again, which takes longer than a picture.

import FrameBatches

/// The images are 16×16 pixels of one colour.
enum WarmUp {
  /// Returns a decoder that has decoded an image of each kind.
  static func decoder(limits: Limits, background: Colour) -> PictureDecoder {
    ColourManagement.warmUp()
    let decoder = PictureDecoder(limits: limits, background: background)
    let look = FrameComposition(content: .image(nil), masks: .rectangles([]))
    // Ignore an error here: the first files of a batch will fail in the same way.
    for image in [jpeg, png, greyPNG, webp, lossyWebP] { _ = try? decoder.picture(from: [image], look) }
    for archive in [gzip, zstd] { unpack(archive) }
    return decoder
  }

  private static func unpack(_ archive: [UInt8]) {
    var unread = archive[...]
    let input = unsafe ArchiveInput { target in
      let part = unread.prefix(target.count)
      unsafe target.copyBytes(from: part)
      unread = unread.dropFirst(part.count)
      return part.count
    }
    try? Archive.unpack(input, name: "", limits: Limits()) { _ in }
  }

  /// A tar of one file whose name is not ASCII.
  private static let gzip = bytes(
    """
    1f8b0800000000000203edd3310a02311040d1a93d454e909dd1182bd1d2d22b045c14ab655d2157f21c7b310d1662b16504d9ff9a0c69a6
    18be6f7cb33fa67c68d3a9eda50a7d9b7a556df399cbbfe9d256e2b2fcc0fd36a4feb55ee6c9d6ae4bc3653b3efcb53b2f04f3b22b67afbc
    a3441d4398ee5fedbb7f8dd18238a5ffea3209000000000000000000000000fcb52795e28bad00280000
    """)

  private static let zstd = bytes(
    """
    28b52ffd0468950300f2c4111aa03963ff595505f452a28d7d5e77eed003bbbfad4946abe118caf3a46c5b7b67acfdaba1c0021b05450523
    1d4cc3ea6b74d2795467526183775d89fd353ec53d64bae4586aa90e20602dbb0d0b60be7970afaf5eb02a57190f60dbfa9c3e8b69a78239
    251f93c206c08a09329d3a3fed73d2
    """)

  static let jpeg = bytes(
    """
    ffd8ffe000104a46494600010100000100010000ffdb004300100b0c0e0c0a100e0d0e1211101318281a181616183123251d283a333d3c39
    33383740485c4e404457453738506d51575f626768673e4d71797064785c656763ffdb0043011112121815182f1a1a2f6342384263636363
    63636363636363636363636363636363636363636363636363636363636363636363636363636363636363636363ffc00011080010001003
    012200021101031101ffc4001500010100000000000000000000000000000004ffc40014100100000000000000000000000000000000ffc4
    0014010100000000000000000000000000000005ffc40014110100000000000000000000000000000000ffda000c03010002110311003f00
    9801479fffd9
    """)

  static let png = bytes(
    """
    89504e470d0a1a0a0000000d4948445200000010000000100802000000909168360000001a4944415478da633c1120c7400a606220118c6a
    18d53074340000e7db0156204c5da30000000049454e44ae426082
    """)

  /// A kind that libavcodec decodes.
  private static let greyPNG = bytes(
    """
    89504e470d0a1a0a0000000d49484452000000100000001008000000003a98a0bd0000001149444154789c638c6240054c0c235a00007156007a
    a23ab0c10000000049454e44ae426082
    """)

  static let webp = bytes(
    """
    524946461e000000574542505650384c110000002f0fc003000750a822d7a3ff8188e87f0000
    """)

  /// The other coding of WebP, whose tables libavcodec makes for itself.
  static let lossyWebP = bytes(
    """
    52494646240000005745425056503820180000005001009d012a1000100002c04c25a40004740000e4400000
    """)

  private static func bytes(_ hexadecimal: String) -> [UInt8] {
    let digits = hexadecimal.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}
