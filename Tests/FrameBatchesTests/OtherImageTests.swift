import Testing

@testable import FrameBatches

@Suite struct OtherImageTests {
  @Test func formatsAreKnownByTheirFirstBytes() {
    let files: [(String, String)] = [
      ("\0\0\0\u{0C}jP  \r\n", "JPEG 2000"), ("P6\n", "PPM"), ("P5 ", "PGM"), ("P4\n", "PBM"), ("P7\n", "PAM"),
      ("Pf\n", "PFM"), ("8BPS", "PSD"), ("\0\0\u{01}\0", "ICO"), ("%PDF-1.7", "PDF"), ("<svg xmlns", "SVG"),
      ("<?xml version=\"1.0\"?><svg>", "SVG"),
    ]
    for (start, name) in files {
      #expect(OtherImage(of: Array(start.utf8) + [0, 0, 0])?.rawValue == name, "\(name)")
    }
    #expect(OtherImage(of: [0xFF, 0x4F, 0xFF, 0x51]) == .jpeg2000)
    for other in ["", "P", "P6", "PX\n", "<?xml?><html>", "ftyp", "\0\0\0\0ftyp", "BM", "GIF89a"] {
      #expect(OtherImage(of: Array(other.utf8)) == nil, "\(other)")
    }
  }

  /// Manifests and the decoder's answers cut reasons at 255 bytes.
  @Test(arguments: OtherImage.allCases) func reasonNamesTheFormatInFewBytes(kind: OtherImage) {
    #expect(kind.refusal.text.utf8.count < 200 && kind.refusal.remedy == .convert(kind))
    #expect(kind.advice(for: "a b.$(x)").contains("for f in *.\(kind == .jpeg2000 ? "jp2" : "")"))
    #expect(kind.advice(for: "IMG_1.Xyz").contains("for f in *.Xyz; do"))
  }

  @Test func adviceOnLimitsIsThatOfAllFrames() throws {
    let sizes = [(10_240, 1_440), (9_000, 9_000), (100, 12_000)]
    let refusals = sizes.compactMap { PixelSize(width: $0, height: $1).excess(of: Limits()) }
    #expect(refusals[0].text.hasSuffix("; raise the limit with --limit side=10240"))
    let all = refusals.compactMap { if case .raise(let advice)? = $0.remedy { advice } else { nil } }
    #expect(
      try #require(LimitAdvice(all)).text == "raise the limit with --limit side=12000 --limit pixels=81000000")
    #expect(LimitAdvice([] as [LimitAdvice]) == nil)
    #expect(PixelSize(width: 8_192, height: 4_000).excess(of: Limits()) == nil)
    let largest = PixelSize(width: Int(UInt32.max), height: Int(UInt32.max))
    #expect(largest.excess(of: Limits())?.text.hasSuffix("scale it to at most 16384 a side") == true)
  }
}
