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
  /// Where archives and images are decoded, with these limits and background; nil for right here, for what can be
  /// trusted.
  public var decoders: DecoderForkServer?
  /// Records the time of each stage; may be shared.
  package var profile: Profile?

  public init() {}
}
