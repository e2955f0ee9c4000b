import FileSystem
import FrameBatches

/// How batches are decoded and encoded.
public struct EncodingOptions: Sendable {
  public var quality = Quality.balanced
  /// The longest hold, in milliseconds; what is beyond is a gap.
  public var maxHoldMs: Int64 = 5_000
  /// The colour behind transparent pixels.
  public var background = Colour.black
  public var limits = Limits()
  /// Facts that batches may not state.
  package var input = InputOptions()
  /// The decoder processes, made with these limits and background; nil to decode trusted files in this process.
  public var decoders: DecoderForkServer?
  /// Records the time of each stage; may be shared.
  package var profile: Profile?

  public init() {}
}
