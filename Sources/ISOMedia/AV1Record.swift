/// The `AV1CodecConfigurationRecord` of a video in AV1 (AV1 in ISOBMFF, 2.3), as archives of earlier versions have it.
package struct AV1Record {
  /// The `codecs` parameter of RFC 6381: profile, level, tier and bits (AV1 in ISOBMFF, 5).
  package let codec: String

  /// - Parameter configuration: an `av1C` or an `avcC`, which begins with another byte.
  /// - Returns: nil for an `avcC`.
  package init?(_ configuration: [UInt8]) {
    // A marker and version 1.
    guard configuration.count >= 4, configuration[0] == 0x81 else { return nil }
    let (profile, level, tier) = (configuration[1] >> 5, configuration[1] & 0x1F, configuration[2] >> 7)
    let bits = configuration[2] & 0x40 == 0 ? "08" : configuration[2] & 0x20 == 0 ? "10" : "12"
    codec = "av01.\(profile).\(level < 10 ? "0" : "")\(level)\(tier == 0 ? "M" : "H").\(bits)"
  }
}
