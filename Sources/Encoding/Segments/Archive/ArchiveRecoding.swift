// Pictures of an AV1 archive, coded again behind a key frame of their own. The pictures of AV1 can follow no other key frame than theirs.

import ISOMedia

package enum ArchiveRecoding {
  /// Maximum number of pictures: some minutes of work.
  package static let maximumPictures = 600

  /// - Parameters:
  ///   - count: the number of pictures; at least one, and ``maximumPictures`` at most.
  ///   - picture: returns a picture; all are of one size. It is asked in order.
  /// - Returns: a sample for each picture, the first one a key frame, and what a decoder needs before them.
  package static func samples(
    _ count: Int, picture: (Int) throws -> Picture
  ) throws -> (samples: [[UInt8]], parameterSets: ParameterSets) {
    let first = try picture(0)
    let encoder = try VideoEncoder(
      width: first.codedWidth, height: first.codedHeight, settings: EncoderSettings(ArchiveCoding.av1))
    var coded = try encoder.encode(first, pts: 0)
    for index in 1..<max(1, count) { coded += try encoder.encode(picture(index), pts: Int64(index)) }
    coded += try encoder.finish()
    guard coded.map(\.pts) == Array(0..<Int64(count)), coded.map(\.isKey) == (0..<count).map({ $0 == 0 }) else {
      throw SegmentMismatch("the encoder changed a time or added a key frame")
    }
    return (coded.map(\.data), encoder.parameterSets)
  }
}
