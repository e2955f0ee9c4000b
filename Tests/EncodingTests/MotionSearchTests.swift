import CFFmpeg
import FrameBatches
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import ISOMedia

/// How far x264 looks for a block of the picture before.
@Suite struct MotionSearchTests {
  /// Segments of a live worker have these parameters. Others make other bytes of the same pictures.
  private static let near =
    "ref=1:weightp=0:qcomp=1:rc-lookahead=0:sync-lookahead=0:mbtree=0:scenecut=0:keyint=infinite:bframes=0:sliced-threads=0:8x8dct=0:subme=0:qpmin=10:qpmax=51"
  private static let far = near + ":me=umh:merange=256"

  init() { FFmpegLog.silence() }

  private func stated(_ settings: EncoderSettings) -> String? { settings.json.object?["parameters"]?.string }

  @Test(arguments: [(Quality.small, far), (.balanced, near), (.sharp, near)])
  func segmentsOfAWorkerSearchFarInQualitySmallOnly(quality: Quality, parameters: String) {
    var options = EncodingOptions()
    options.quality = quality
    for settings in [EncoderSettings(quality), EncoderSettings(options)] {
      #expect(settings.parameters == parameters && stated(settings) == parameters)
    }
  }

  @Test(arguments: Quality.allCases)
  func segmentsThatAreEncodedAgainSearchFar(quality: Quality) {
    let settings = EncoderSettings(reencodingTo: quality)
    #expect(settings.parameters == Self.far && stated(settings) == Self.far)
    // Nothing else differs from the settings of a worker.
    #expect(
      settings.json.setting(["parameters": .null]) == EncoderSettings(quality).json.setting(["parameters": .null]))
  }

  @Test func archivesHaveASearchOfTheirOwn() {
    #expect(EncoderSettings.archive.parameters == ArchiveCoding.parameters)
  }

  /// Smaller pictures have a level that allows no such vectors.
  private static let size = PixelSize(width: 256, height: 640)

  /// Returns a page of noise in squares of four pixels, scrolled by `shift` of them.
  private func page(scrolledBy shift: Int) throws -> Picture {
    var random = Random(seed: 48)
    let columns = Self.size.width / 4
    let squares = (0..<2 * columns * Self.size.height / 4).map { _ in UInt8(random.int(40...200)) }
    let buffer = try FrameBuffer(width: Self.size.width, height: Self.size.height, format: AV_PIX_FMT_YUV420P)
    for plane in 0..<3 {
      let (start, stride) = buffer.plane(plane)
      let half = plane == 0 ? 1 : 2
      for row in 0..<Self.size.height / half {
        for column in 0..<Self.size.width / half {
          start[row * stride + column] = plane == 0 ? squares[(row + shift) / 4 * columns + column / 4] : 128
        }
      }
    }
    return try Picture(adopting: buffer)
  }

  /// Returns the bytes of a page behind the same one before a scroll of 200 pixels.
  private func bytesOfAScroll(_ settings: EncoderSettings) throws -> (picture: Int, sets: ParameterSets) {
    let encoder = try VideoEncoder(width: Self.size.width, height: Self.size.height, settings: settings)
    let coded =
      try encoder.encode(page(scrolledBy: 0), pts: 0) + encoder.encode(page(scrolledBy: 200), pts: 90_000)
      + encoder.finish()
    try #require(coded.count == 2)
    return (coded[1].data.count, encoder.parameterSets)
  }

  /// The parameter sets are equal: segments of both settings can be in one film.
  @Test func farSearchFindsAScrollThatANearOneDoesNot() throws {
    let near = try bytesOfAScroll(EncoderSettings(.balanced))
    let far = try bytesOfAScroll(EncoderSettings(reencodingTo: .balanced))
    #expect(far.picture < near.picture / 2, "\(far.picture) bytes instead of \(near.picture)")
    #expect(far.sets == near.sets)
  }
}
