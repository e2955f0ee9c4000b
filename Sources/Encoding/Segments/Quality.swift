import FrameBatches
import ISOMedia
import JSON

/// A trade-off between bytes and likeness.
public enum Quality: String, Sendable, CaseIterable {
  /// For archives: about half of the bytes of `balanced` for 1.4 to 1.8 × its CPU, text still readable.
  case small
  /// For replay: its luma is closer to the screen than that of the captured JPEG.
  case balanced
  /// For evidence: close to the captured file, its noise included.
  case sharp

  /// x264's constant rate factor, 0 (lossless) to 51; chosen by measurement, as the parameters are: `Benchmarks/SWEEP.md`.
  public var rateFactor: Double {
    switch self {
    case .small: 35.1
    case .balanced: 28.6
    case .sharp: 19.3
    }
  }
}

/// How far x264 looks for a block in the picture before. Measured in `Benchmarks/LIMITS.md`.
package enum MotionSearch: Sendable {
  /// 16 pixels, as the preset says.
  case near
  /// 256 pixels, because pages scroll: where bytes count more than CPU. Less where the level of small pictures allows less.
  case far

  fileprivate var parameters: String { self == .near ? "" : ":me=umh:merange=256" }
}

/// All settings that decide the bytes of a segment besides its pictures. Each manifest has them.
package struct EncoderSettings: Sendable {
  let quality: Quality
  /// Whether they are those of an archive, and not of segments as a worker makes them.
  let isArchive: Bool
  let codec = "libx264"
  var preset: String { isArchive ? ArchiveCoding.preset : "superfast" }
  var rateFactor: Double { isArchive ? ArchiveCoding.rateFactor : quality.rateFactor }
  /// Maximum hold, in milliseconds.
  let maxHoldMs: Int64
  /// The length of a full segment, in milliseconds.
  let segmentMs: Int64
  /// Whether the segments are those of a film that leaves none behind.
  let isFilm: Bool
  /// The colour behind transparent pixels.
  let background: Colour
  /// The bits that samples of 16 bits use, if the user states them.
  let sampleBits: Int?
  /// How far x264 looks for motion; ignored in archives, which have parameters of their own.
  let motion: MotionSearch
  /// The version of our own rules for repeating pictures and writing the file. Raise it when they make other bytes.
  let rules = 3

  package init(_ quality: Quality) {
    var options = EncodingOptions()
    options.quality = quality
    self.init(options)
  }

  /// The settings of an archive.
  package static var archive: EncoderSettings {
    var options = EncodingOptions()
    options.segmentMs = ArchiveCoding.segmentMs
    return EncoderSettings(options, isArchive: true, .near)
  }

  /// The settings of a session or a film that is encoded again: there is time to search far.
  package init(reencodingTo quality: Quality) {
    var options = EncodingOptions()
    options.quality = quality
    self.init(options, isArchive: false, .far)
  }

  package init(_ options: EncodingOptions) {
    self.init(options, isArchive: false, options.quality == .small ? .far : .near)
  }

  private init(_ options: EncodingOptions, isArchive: Bool, _ motion: MotionSearch) {
    self.isArchive = isArchive
    self.motion = motion
    quality = options.quality
    maxHoldMs = options.maxHoldMs
    segmentMs = options.film == nil ? options.segmentMs : FilmCuts.fullMs
    isFilm = options.film != nil
    background = options.background
    sampleBits = options.sampleBits
  }

  /// - constant quantiser over time (`qcomp=1`): x264's default spends bits on calm pictures without need
  /// - no look-ahead, no macroblock tree: neither helps at one picture a second, both delay
  /// - one reference, no weights: screenshots do not fade or return to an older one, and repeats can be put between
  ///   pictures that do not refer to them (``SkipSliceWriter``)
  /// - no scene cuts, no key frame interval: the first picture is the only key frame
  /// - no 8×8 transform: on text it costs bytes and likeness
  /// - motion by whole pixels: screens move so, and it saves a third of the CPU
  /// - quantisers of 10 to 51: x264 prepares tables for each whenever an encoder is opened
  private static let ownParameters =
    "ref=1:weightp=0:qcomp=1:rc-lookahead=0:sync-lookahead=0:mbtree=0:scenecut=0:keyint=infinite:bframes=0:sliced-threads=0:8x8dct=0:subme=0:qpmin=10:qpmax=51"

  /// The parameters and the presets of all settings of this version, for a reader who knows them from any others.
  package static var allParameters: Set<String> {
    [
      ownParameters + MotionSearch.near.parameters, ownParameters + MotionSearch.far.parameters,
      ArchiveCoding.parameters,
    ]
  }
  package static var presets: Set<String> { Set([archive, EncoderSettings(.balanced)].map(\.preset)) }

  var parameters: String { isArchive ? ArchiveCoding.parameters : Self.ownParameters + motion.parameters }

  /// The default length of a segment is not written, nor bits that nobody states.
  package var json: JSONValue {
    .object([
      "quality": .string(isArchive ? "archive" : quality.rawValue), "codec": .string(codec),
      "preset": .string(preset), "rateFactor": .number("\(rateFactor)"), "parameters": .string(parameters),
      "maxHoldMs": .number(maxHoldMs),
      "background": .string(background.description), "rules": .number(rules),
      "libavcodec": .string(FFmpegVersion.libavcodec),
    ]).setting(segmentMs == Timeline.defaultSegmentMs ? [:] : ["segmentMs": .number(segmentMs)])
      .setting(sampleBits.map { ["bits": .number($0)] } ?? [:])
  }
}
