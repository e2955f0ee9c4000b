import Foundation
import TestSupport
import Testing

/// The worker decodes every accepted kind of picture as Pillow does. It refuses all others with the reason that
/// docs/input-formats.md gives.
@Suite struct PictureKindTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test func everyAcceptedKindMatchesPillow() throws {
    try Pillow.run("make_pictures.py", [scratch.path])
    let pictures = try ShownPicture.all(try names(in: scratch.path).map(scratch.path))
    #expect(pictures.count == 57)
    for picture in pictures {
      #expect(try #require(picture.difference, "\(picture.name): \(picture.outcome)") <= 3, "\(picture.name)")
    }
  }

  /// HEIC, AVIF and JPEG XL of other programs: tiles, turns, crops, transparency, profiles, high dynamic range.
  @Test func everyModernKindMatchesItsTruth() throws {
    let (folder, truth) = (Fixture("modern").path, Fixture("modern-truth").path)
    let files = try names(in: folder)
    let pictures = try ShownPicture.all(files.map { "\(folder)/\($0)" }, truths: files.map { "\(truth)/\($0).png" })
    #expect(pictures.count == 31)
    for picture in pictures {
      #expect(try #require(picture.difference, "\(picture.name): \(picture.outcome)") <= 3, "\(picture.name)")
      #expect(try #require(picture.differenceInFlatAreas) <= 1, "\(picture.name)")
    }
    // A file that equals another one tests nothing.
    #expect(Set(try files.map { try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\($0)")) }).count == files.count)
  }

  /// Other programs' test files, below the directory BAD_IMAGES. Empty unless that is set; `make test-corpus` sets it.
  private static let corpus: [String] = {
    guard let path = ProcessInfo.processInfo.environment["BAD_IMAGES"] else { return [] }
    let files = FileManager.default.subpaths(atPath: path) ?? []
    return files.filter { URL(fileURLWithPath: $0).pathExtension != "" }.sorted().map { "\(path)/\($0)" }
  }()

  /// Images that Pillow shows and the worker refuses on purpose: ends of the files' names, by the reason.
  /// docs/input-formats.md must state each reason. A fuzzer broke the JPEGs: libjpeg's own `djpeg -strict` refuses each
  /// of them as well.
  private static let refused = [
    "an ICO image is not supported": ["smile-incorrect-image-length.ico"],
    "a TIFF of a rare kind (compression 7, colours 6) is not supported": [
      "minimized-fuzzer_script_tiff-5026894169374720.tif"
    ],
    "a JPEG with arithmetic coding is not supported": [
      "full_images_id:000862,src:000140,op:arith8,pos:159,val:+9.jpg"
    ],
    // Unusual subsampling, for example four lines of one chroma component to one of luma.
    "a rare kind of file that is not supported": [
      "full_images_id:001694,src:000677,op:arith8,pos:172,val:+3.jpg",
      "full_images_id:005214,src:005196,op:flip2,pos:175.jpg",
    ],
    "invalid data": [
      "CVE-2018-14498_hbo_rdbmp.c:211_2.bmp",
      // The checksum of the pixels is wrong.
      "png_xcsn0g01.png",
      // Other bytes where a segment should start.
      "full_images_id:005038,sync:jpeg_turbo,src:003854.jpg", "full_images_id:005077,sync:jpeg_turbo,src:003842.jpg",
      "full_images_id:003759,src:003731,op:flip1,pos:301.jpg",
      // Invalid codes, coded data that ends early, missing coefficients, quantisers of zero.
      "full_images_id:000239,src:000000,op:flip4,pos:287.jpg", "full_images_id:001104,sync:jpeg_turbo,src:001107.jpg",
      "full_images_id:001527,src:000673,op:flip1,pos:198.jpg",
      "full_images_id:002043,src:001071,op:arith8,pos:164,val:-20.jpg",
      "full_images_id:002468,src:001607,op:flip1,pos:300.jpg", "full_images_id:002870,src:002441,op:flip2,pos:200.jpg",
      "full_images_id:002901,src:002499,op:havoc,rep:1.jpg", "full_images_id:005505,sync:jpeg_turbo,src:004182.jpg",
      "turbo_full_images_id:000334,src:000000,op:arith16,pos:229,val:be:-34.jpg",
      "turbo_full_images_id:001255,sync:jpeg9,src:002364.jpg",
      "turbo_full_images_id:001427,src:000319,op:havoc,rep:1.jpg",
      "turbo_full_images_id:001601,src:001061,op:arith8,pos:224,val:-17.jpg",
      "turbo_full_images_id:001815,src:001809,op:flip1,pos:302.jpg",
    ],
  ]

  /// Each batch has few files, so a crash or a hang points to few of them.
  @Test(
    .enabled(if: !corpus.isEmpty), arguments: Array(stride(from: 0, to: corpus.count, by: 64)))
  func filesOfOtherProgramsMatchPillowOrAreRefusedAsDocumented(first: Int) throws {
    for picture in try ShownPicture.all(Array(Self.corpus[first...].prefix(64))) {
      switch picture.outcome {
      case .encoded:
        guard let difference = picture.difference else { continue }
        // A gamma of 1 raises dark tones, and the differences of coding with them.
        #expect(difference <= 3.1, "\(picture.name)")
      case .refused(let reason):
        #expect(!reason.isEmpty)
        guard picture.reference != nil else { continue }
        let known = Self.refused.first { $0.value.contains { picture.name.hasSuffix($0) } }
        #expect(known.map { reason.contains($0.key) } == true, "\(picture.name): \(reason)")
      }
    }
  }

  @Test func pageOfInputFormatsNamesEveryReasonToRefuseAnImage() throws {
    let page = try String(contentsOf: Fixture.root.appendingPathComponent("docs/input-formats.md"), encoding: .utf8)
    for reason in Self.refused.keys { #expect(page.contains("`\(reason)`"), "\(reason)") }
  }
}
