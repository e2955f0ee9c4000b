import FileSystem
import FrameBatches

/// How batches are decoded and encoded.
public struct EncodingOptions: Sendable {
  /// The quality of the video.
  public var quality = Quality.balanced
  /// Maximum hold of a frame in captures at an interval, in milliseconds; at least 1. The time after it is a gap.
  public var maxHoldMs: Int64 = DefaultLengths.maxHoldMs
  /// The length of a full segment in milliseconds, from 1 000 to 600 000; other values become the nearest of these.
  public var segmentMs: Int64 = DefaultLengths.segmentMs {
    didSet { segmentMs = min(max(segmentMs, Timeline.segmentLengths.lowerBound), Timeline.segmentLengths.upperBound) }
  }
  /// The largest hold that an operator can set, in milliseconds.
  package static let longestHoldMs: Int64 = 86_400_000
  /// The rule for the segments of a film that leaves none behind; nil for segments of one length.
  package var film: FilmCuts?
  /// The longest part of a hold that one segment has, in milliseconds.
  package var longestSegmentMs: Int64 { film?.longestMs ?? segmentMs }
  /// The colour behind transparent pixels.
  public var background = Colour.black
  /// The bits that samples of 16 bits use, 8 to 16; nil if the files decide.
  package var sampleBits: Int?
  /// The limits of a batch.
  public var limits = Limits()
  /// Maximum length of a picture's sides in pixels, to which larger ones are scaled; nil for any length.
  package var maxSide: Int?
  /// The size of all pictures, which stand in its middle; even sides. For films only: manifests tell the places of masks.
  package var canvas: PixelSize?
  /// Facts that batches may not state.
  package var input = InputOptions()
  /// The decoder processes; nil to decode trusted files in this process. Pictures have the limits and the background that the
  /// processes were made with, instead of those of these options.
  public var decoders: DecoderForkServer?
  /// Records the time of each stage. Several batches may share it.
  package var profile: Profile?
  /// Whether to tell since when the screen has looked as it does at the end of a batch.
  package var watchesScreen = false

  /// The default options.
  public init() {}
}

extension PictureDecoder {
  convenience init(_ options: EncodingOptions) {
    self.init(limits: options.limits, background: options.background, profile: options.profile)
    sampleBits = options.sampleBits
  }
}

extension Timeline {
  package init(of batch: Batch, _ options: EncodingOptions) {
    self.init(
      intervalMs: batch.intervalMs, maxHoldMs: batch.capture == .onChange ? nil : options.maxHoldMs,
      segmentMs: options.segmentMs, film: options.film)
  }

  /// Maximum number of segments of a batch, whichever of its frames can be decoded.
  package static func segmentBound(of batch: Batch, _ options: EncodingOptions) -> Int64 {
    let ends = batch.frames.dropFirst().map(\.timeMs) + [batch.endMs]
    let shown = zip(batch.frames, ends).map { frame, end in
      batch.capture == .onChange ? end - frame.timeMs : min(end - frame.timeMs, options.maxHoldMs)
    }
    return shown.reduce(0) { $0 + $1 / options.longestSegmentMs + 1 }
  }
}
