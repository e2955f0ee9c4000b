import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// Camera raw files: the largest preview is shown, and never the thumbnail.
@Suite struct CameraRawTests {
  init() { FFmpegLog.silence() }

  private static func number(_ value: Int, _ count: Int = 4) -> [UInt8] {
    (0..<count).map { UInt8(value >> (8 * $0) & 255) }
  }

  /// Returns a JPEG in grey of one colour.
  private static func jpeg(_ width: Int, _ height: Int) throws -> [UInt8] {
    try Array(
      Tool.output(
        "ffmpeg",
        [
          "-v", "error", "-f", "lavfi", "-i", "color=c=0x808080:s=\(width)x\(height)", "-frames:v", "1", "-f", "mjpeg",
          "-",
        ]
      ))
  }

  /// Returns a file whose first directory has a thumbnail of 16×8 pixels in grey, and names those of a sensor and of previews.
  ///
  /// - Parameters:
  ///   - tags: further tags of the first directory.
  ///   - isStrip: whether previews are the strip of a compressed picture.
  private static func file(
    _ previews: [[UInt8]], sensor: Int = 32_803, tags: [(Int, Int)] = [], isStrip: Bool = false
  ) -> [UInt8] {
    var file = Array("II".utf8) + number(42, 2) + number(0) + [UInt8](repeating: 99, count: 128)
    func append(_ tags: [(Int, [Int])]) -> Int {
      let place = file.count
      var lists: [UInt8] = []
      let end = place + 2 + 12 * tags.count + 4
      file += number(tags.count, 2)
      for (tag, values) in tags.sorted(by: { $0.0 < $1.0 }) {
        file += number(tag, 2) + number(4, 2) + number(values.count)
        file += number(values.count == 1 ? values[0] : end + lists.count)
        if values.count > 1 { lists += values.flatMap { number($0) } }
      }
      file += number(0) + lists
      return place
    }
    var places = [append([(256, [1_600]), (257, [1_200]), (262, [sensor]), (259, [1])])]
    for preview in previews {
      let start = file.count
      file += preview
      places.append(
        append(
          isStrip ? [(259, [7]), (273, [start]), (279, [preview.count])] : [(513, [start]), (514, [preview.count])]))
    }
    let thumbnail = [(254, 1), (256, 16), (257, 8), (258, 8), (259, 1), (262, 1), (273, 8), (278, 8), (279, 128)]
    let first = append((thumbnail + tags).map { ($0.0, [$0.1]) } + [(330, places)])
    file.replaceSubrange(4..<8, with: number(first))
    return file
  }

  private func decoded(_ file: [UInt8]) throws -> DecodedPicture {
    try PictureDecoder(limits: Limits()).picture(from: [file], FrameComposition(content: .image(nil), masks: .none))
  }

  @Test(arguments: [true, false]) func largestPreviewIsShownWithANote(isStrip: Bool) throws {
    let previews = [try Self.jpeg(640, 480), try Self.jpeg(800, 600), try Self.jpeg(320, 240)]
    let file = Self.file(previews, isStrip: isStrip)
    let shown = try decoded(file)
    #expect((shown.picture.width, shown.picture.height) == (800, 600))
    #expect(shown.notes == ["shown by the preview in its camera raw file, 800×600"])
    // The first directory tells how it is turned.
    let turned = try decoded(Self.file(previews, tags: [(274, 6)], isStrip: isStrip)).picture
    #expect((turned.width, turned.height) == (600, 800))
    #expect(ImageSequence(of: file, .tiff) == nil)
  }

  @Test func fileWithoutALargePreviewIsRefusedWithTheCommandThatConvertsIt() throws {
    for previews in [[], [try Self.jpeg(160, 120)], [Array(try Self.jpeg(800, 600).prefix(300))]] {
      let error = #expect(throws: RefusedPicture.self) { try decoded(Self.file(previews)) }
      #expect(error?.refusal.remedy == .convert(.cameraRaw))
      #expect(error?.refusal.text.contains("darktable-cli") == true)
    }
  }

  /// A TIFF that names no sensor's picture is shown as before.
  @Test func ordinaryTIFFIsNoCameraRaw() throws {
    let file = Self.file([], sensor: 1)
    #expect(CameraRaw(file) == nil)
    #expect(try decoded(file).picture.width == 16)
  }
}
