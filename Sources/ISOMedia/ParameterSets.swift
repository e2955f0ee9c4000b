/// The coding of a video track, with what a decoder needs before its samples: the parameter sets of H.264 without start codes, or
/// the sequence header of AV1.
package struct ParameterSets: Equatable {
  package enum Coding {
    case h264
    case av1
  }

  package let coding: Coding
  /// At least 4 bytes. In AV1 the unit with its header and its size.
  package let sequence: [UInt8]
  /// Empty in AV1.
  package let picture: [UInt8]
  /// The picture parameter set of ``KeyPictureWriter``, in a film that has such a picture.
  package var keyPicture: [UInt8]?

  package init(sequence: [UInt8], picture: [UInt8]) {
    coding = .h264
    self.sequence = sequence
    self.picture = picture
  }

  /// - Parameter header: an AV1 stream's sequence header; other units are left out.
  /// - Returns: nil for other streams than those of our encoder.
  package init?(av1 header: [UInt8]) {
    // Ours have some 13 bytes. FilmWriter reserves space for 1 024.
    guard let unit = OpenBitstreamUnit.split(header[...])?.first(where: { $0.kind == .sequenceHeader }),
      (4...1_024).contains(unit.bytes.count), AV1SequenceHeader(unit.payload) != nil
    else { return nil }
    coding = .av1
    sequence = Array(unit.bytes)
    picture = []
  }

  private var av1: AV1SequenceHeader? {
    coding == .av1 ? OpenBitstreamUnit.split(sequence[...])?.first.flatMap { AV1SequenceHeader($0.payload) } : nil
  }

  /// The first byte of an `av1C`: a marker and version 1. An `avcC` begins with 1.
  private static let av1Version: UInt8 = 0x81

  /// Whether a configuration is an `av1C`.
  package static func isAV1(_ configuration: [UInt8]) -> Bool { configuration.first == av1Version }

  /// The type of the box that ``configuration`` is in.
  package var configurationType: String { coding == .av1 ? "av1C" : "avcC" }

  /// The type of the sample entry, without parameter sets in samples.
  package var entryType: String { coding == .av1 ? "av01" : "avc1" }

  /// `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 5.3.3.1), or `AV1CodecConfigurationRecord` (AV1 in ISOBMFF, 2.3).
  package var configuration: [UInt8] {
    if let av1 {
      // 8 bits, 4:2:0, an unknown place of chroma; no delay of the presentation.
      return [Self.av1Version, UInt8(av1.profile << 5 | av1.level), UInt8(av1.tier << 7 | 0x0C), 0] + sequence
    }
    var record = MP4Box()
    record.u8(1)
    record.append(sequence[1...3])
    record.u8(0xFC | 3)  // NAL units behind 4 bytes of length
    record.u8(0xE0 | 1)
    record.u16(UInt16(sequence.count))
    record.append(sequence)
    let pictures = [picture, keyPicture].compactMap { $0 }
    record.u8(UInt8(pictures.count))
    for picture in pictures {
      record.u16(UInt16(picture.count))
      record.append(picture)
    }
    if sequence[1] >= 100 {
      record.append([0xFD, 0xF8, 0xF8, 0])  // High profile: 4:2:0 (with 6 reserved bits), 8 bits, 8 bits, no extensions
    }
    return record.bytes
  }

  /// Reads a record with one set of each kind.
  package init?(configuration: some Sequence<UInt8>) {
    let configuration = Array(configuration)
    if Self.isAV1(configuration) {
      self.init(av1: Array(configuration.dropFirst(4)))
      guard self.configuration == configuration else { return nil }
      return
    }
    func unit(at offset: Int) -> (bytes: [UInt8], end: Int)? {
      guard offset + 3 <= configuration.count, configuration[offset] & 0x1F == 1 else { return nil }
      let start = offset + 3
      let end = start + (Int(configuration[offset + 1]) << 8 | Int(configuration[offset + 2]))
      // Ours have some 30 bytes. FilmWriter reserves space for 1 024 bytes each.
      return end <= configuration.count && (1...1_024).contains(end - start)
        ? (Array(configuration[start..<end]), end) : nil
    }
    guard let sequence = unit(at: 5), sequence.bytes.count >= 4, let picture = unit(at: sequence.end) else {
      return nil
    }
    self.init(sequence: sequence.bytes, picture: picture.bytes)
  }

  /// Whether the pictures are 4:2:0 with 8 bits, as ``configuration`` says of the profiles that have a choice
  /// (ITU-T H.264, 7.3.2.1.1).
  package var isOrdinary420: Bool {
    if coding == .av1 { return true }
    var reader = BitReader(unit: sequence.prefix(64))
    _ = reader.bits(8)
    let profile = reader.bits(8)
    _ = (reader.bits(16), reader.unsigned())
    guard profile >= 100 || profile == 44 || profile == 83 || profile == 86 else { return true }
    let formats = (reader.unsigned(), reader.unsigned(), reader.unsigned())
    return formats == (1, 0, 0)
  }

  /// All as NAL units behind their lengths, to put before a key frame. Empty in AV1, whose key frames carry them anyway.
  package var lengthPrefixed: [UInt8] {
    if coding == .av1 { return [] }
    return [sequence, picture, keyPicture].compactMap { $0 }.flatMap(NALUnit.lengthPrefixed)
  }

  /// The `codecs` parameter of RFC 6381.
  package var codec: String { "\(entryType).\(profileAndLevel)" }

  /// Profile, constraints and level as in RFC 6381, 3.3; in AV1 profile, level, tier and bits (AV1 in ISOBMFF, 5).
  var profileAndLevel: String {
    if let av1 {
      let level = (av1.level < 10 ? "0" : "") + String(av1.level)
      return "\(av1.profile).\(level)\(av1.tier == 0 ? "M" : "H").08"
    }
    return sequence[1...3].map { String(256 + Int($0), radix: 16, uppercase: true).dropFirst() }.joined()
  }
}
