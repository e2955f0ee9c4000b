import Testing

@testable import Showing

/// The names of written pictures. Only files with them are leftovers of a killed command.
@Suite struct PictureNameTests {
  @Test func ownNamesAreRecognised() {
    for timeMs: Int64 in [0, 1_767_859_512_340, 4_102_444_800_000] {
      for name in [PictureFacts.name(timeMs), PictureFacts.name(timeMs) + "-0", PictureFacts.name(timeMs) + "-1234"] {
        #expect(PictureFacts.isFileName(name + ".jpg") && PictureFacts.isFileName(name + ".png"))
      }
    }
  }

  @Test(arguments: [
    "", ".jpg", "holiday.jpg", "2026-01-08T08-05-12.340Z", "2026-01-08T08-05-12.340Z.jpeg",
    "2026-01-08T08-05-12.340Z.JPG",
    "2026-01-08T08-05-12.340Z-.jpg", "2026-01-08T08-05-12.340Z-4a.jpg", "2026-01-08T08-05-12.340Z-4.jpg.jpg",
    "2026-01-08T08-05-12.340Z (2).jpg", "2026-01-08T08:05:12.340Z.jpg", "2026-01-08T08-05-12Z.jpg",
    "x2026-01-08T08-05-12.340Z.jpg",
  ])
  func otherNamesAreNot(name: String) { #expect(!PictureFacts.isFileName(name)) }
}
