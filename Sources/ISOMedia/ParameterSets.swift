/// The parameter sets of an H.264 video track, without start codes.
package struct ParameterSets: Equatable {
  /// At least 4 bytes.
  package let sequence: [UInt8]
  package let picture: [UInt8]
  /// The picture parameter set of ``KeyPictureWriter``, in a film that has such a picture.
  package var keyPicture: [UInt8]?

  package init(sequence: [UInt8], picture: [UInt8]) {
    self.sequence = sequence
    self.picture = picture
  }

  /// `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15, 5.3.3.1).
  package var configuration: [UInt8] {
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
    guard AV1Record(configuration) == nil else { return nil }
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
    var reader = BitReader(unit: sequence.prefix(64))
    _ = reader.bits(8)
    let profile = reader.bits(8)
    _ = (reader.bits(16), reader.unsigned())
    guard profile >= 100 || profile == 44 || profile == 83 || profile == 86 else { return true }
    let formats = (reader.unsigned(), reader.unsigned(), reader.unsigned())
    return formats == (1, 0, 0)
  }

  /// All as NAL units behind their lengths, to put before a key frame.
  package var lengthPrefixed: [UInt8] {
    [sequence, picture, keyPicture].compactMap { $0 }.flatMap(NALUnit.lengthPrefixed)
  }

  /// The `codecs` parameter of RFC 6381.
  package var codec: String { "avc1.\(profileAndLevel)" }

  /// Profile, constraints and level as in RFC 6381, 3.3.
  var profileAndLevel: String {
    sequence[1...3].map { String(256 + Int($0), radix: 16, uppercase: true).dropFirst() }.joined()
  }
}
