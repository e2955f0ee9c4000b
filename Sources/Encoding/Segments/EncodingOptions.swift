import FileSystem
import FrameBatches

/// How batches are decoded and encoded.
public struct EncodingOptions: Sendable {
  /// The quality of the video.
  public var quality = Quality.balanced
  /// Maximum hold of a frame in captures at an interval, in milliseconds; at least 1. The time after it is a gap.
  public var maxHoldMs: Int64 = 5_000
  /// The colour behind transparent pixels.
  public var background = Colour.black
  /// The limits of a batch.
  public var limits = Limits()
  /// Facts that batches may not state.
  package var input = InputOptions()
  /// The decoder processes; nil to decode trusted files in this process. Pictures have the limits and the background that the
  /// processes were made with, instead of those of these options.
  public var decoders: DecoderForkServer?
  /// Records the time of each stage. Several batches may share it.
  package var profile: Profile?

  /// The default options.
  public init() {}
}
