import FrameBatches
import JSON

/// How much is spent on a picture: the encoder settings behind a word.
public enum Quality: String, Sendable, CaseIterable {
  /// For archives: some 60 % of the bytes of `balanced`, text still readable.
  case small
  /// For replay: more like what was on screen than the captured JPEG is, as far as luma goes.
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

/// All that decides the bytes of a segment besides its pictures; kept in each manifest.
package struct EncoderSettings: Sendable, Hashable {
  package let quality: Quality
  package let codec: String
  package let preset: String
  package let rateFactor: Double
  package let parameters: String
  /// The longest hold, in milliseconds.
  package let maxHoldMs: Int64
  /// The colour behind transparent pixels.
  package let background: Colour
  /// Of our own rules: how pictures are repeated, and how the file is written. Counted up when they would make other bytes.
  package let rules = 3
  /// libavcodec's version; x264's own is part of the build it was linked with.
  package let libavcodec: String

  /// - constant quantiser over time (`qcomp=1`): x264's default spends bits on calm pictures without need
  /// - no look-ahead, no macroblock tree: neither helps at one picture a second, both delay
  /// - one reference, no weights: of neighbouring screenshots none is a faded or an older one, and repeats can be put
  ///   between pictures that know of none (``SkipSliceWriter``)
  /// - no scene cuts, no key frame interval: the first picture is the only key frame
  /// - no 8×8 transform: on text it costs bytes and likeness
  /// - motion by whole pixels: what moves on a screen moves so, and it saves a third of the CPU
  /// - quantisers of 10 to 51: x264 prepares tables for each that may be used, whenever an encoder is opened
  static let parameters =
    "ref=1:weightp=0:qcomp=1:rc-lookahead=0:sync-lookahead=0:mbtree=0:scenecut=0:keyint=infinite:bframes=0:sliced-threads=0:8x8dct=0:subme=0:qpmin=10:qpmax=51"

  package var json: JSONValue {
    .object([
      "quality": .string(quality.rawValue), "codec": .string(codec), "preset": .string(preset),
      "rateFactor": .number("\(rateFactor)"), "parameters": .string(parameters), "maxHoldMs": .number(maxHoldMs),
      "background": .string(background.description), "rules": .number(rules), "libavcodec": .string(libavcodec),
    ])
  }

  package init(_ quality: Quality, maxHoldMs: Int64 = 5_000, background: Colour = .black) {
    self.maxHoldMs = maxHoldMs
    self.background = background
    self.quality = quality
    codec = "libx264"
    preset = "superfast"
    rateFactor = quality.rateFactor
    parameters = Self.parameters
    libavcodec = H264Encoder.libraryVersion
  }
}
