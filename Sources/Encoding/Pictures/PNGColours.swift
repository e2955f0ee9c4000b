// The colours of a PNG by its chunks, in the order of precedence of the specification (PNG, third edition, 4.3): cICP, iCCP,
// sRGB, gAMA with cHRM. Damaged chunks are ignored, with a note.

import FrameBatches

extension ImageColours {
  private static let names = ["cICP", "iCCP", "sRGB", "gAMA", "cHRM"]
  /// Values of gAMA that are taken for the curve of sRGB, in 100 000ths: 45 455 is 1/2.2, and ffmpeg writes 50 994 for BT.709.
  private static let gammasOfSRGB = 43_000...52_000
  /// Values outside describe no screen; 0 is forbidden.
  private static let gammas = 10_000...1_000_000

  /// - Parameter notes: gets the reason why the stated colours are not used.
  init(ofPNG file: [UInt8], notes: inout [String]) {
    var found: [String: ImageChunk] = [:]
    for chunk in ImageChunk.chunks(of: file, .png, from: 8) {
      // Chunks behind the pixels do not count.
      if chunk.name == "IDAT" { break }
      if Self.names.contains(chunk.name), found[chunk.name] == nil { found[chunk.name] = chunk }
    }
    self = .profile
    /// Returns the body of an intact chunk.
    func body(_ name: String) -> ArraySlice<UInt8>? {
      found[name].flatMap { $0.isIntact(in: file) ? $0.body : nil }
    }
    if found["cICP"] != nil {
      if let space = body("cICP").flatMap(ColourSpace.init(cICP:)) {
        self = space.isStandard ? .standard : .other(space)
        return
      }
      notes.append("shown without its cICP chunk, which is damaged or not supported")
    }
    guard found["iCCP"] == nil, found["sRGB"] == nil, found["gAMA"] != nil else { return }
    guard let gamma = body("gAMA"), gamma.count == 4, Self.gammas.contains(gamma.bigEndian) else {
      notes.append("shown as sRGB: its gAMA chunk cannot be used")
      return
    }
    let transfer: ColourSpace.Transfer =
      Self.gammasOfSRGB.contains(gamma.bigEndian) ? .sRGB : .power(100_000 / Double(gamma.bigEndian))
    let primaries = found["cHRM"] == nil ? .sRGB : body("cHRM").flatMap(Chromaticities.init(cHRM:))
    guard let space = primaries.flatMap({ ColourSpace(transfer, $0, isFullRange: true) }) else {
      notes.append("shown as sRGB: its cHRM chunk cannot be used")
      return
    }
    if !space.isStandard { self = .other(space) }
  }
}

extension ColourSpace {
  /// - Parameter body: four values of ITU-T H.273: primaries, transfer, matrix, range (PNG, 11.3.2.6).
  /// - Returns: nil for a space that is not supported.
  fileprivate init?(cICP body: ArraySlice<UInt8>) {
    let body = Array(body)
    guard body.count == 4, body[2] == 0, body[3] <= 1 else { return nil }
    self.init(primaries: Int(body[0]), transfer: Int(body[1]), isFullRange: body[3] == 1)
  }
}
