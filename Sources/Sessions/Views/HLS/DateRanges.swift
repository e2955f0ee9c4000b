// The chapters of a playlist: date ranges (draft-pantos-hls-rfc8216bis, 4.4.5.1). Pure.

import FileSystem
import ISOMedia

extension FilmChapter {
  /// The beginning of the date range of a gap.
  static let gapRangeTag = "\(rangeTag)ID=\"\(Kind.gap.rawValue)-"
  fileprivate static let rangeTag = "#EXT-X-DATERANGE:"

  /// The identity of its date range: other attributes have another one.
  fileprivate var rangeID: String { "\(kind.rawValue)-\(unixMs)\(unixEndMs.map { "-\($0)" } ?? "")" }

  fileprivate func rangeTag(_ id: String) -> String {
    let length = unixEndMs.map { ",DURATION=\(($0 - unixMs).secondsText)" } ?? ""
    let title = Self.quotable(title)
    return "\(Self.rangeTag)ID=\"\(id)\",CLASS=\"segment-encoder.\(kind.rawValue)\",START-DATE=\"\(unixMs.dateText)\""
      + "\(length),X-TITLE=\"\(title)\"\n"
  }

  /// Returns a text for a quoted string, which has no quote and no end of a line (RFC 8216, 4.2). A quote may have marks on it: then it is
  /// another character, and the same byte.
  private static func quotable(_ text: String) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x22: scalars.append("'")
      case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029: scalars.append(" ")
      default: scalars.append(scalar)
      }
    }
    return String(scalars)
  }
}

extension [FilmChapter] {
  /// The chapters as tags of a playlist. The beginning of a film and the end of a gap have none.
  ///
  /// - Parameter place: ends each identity.
  package func dateRanges(of place: String = "") -> String {
    var last: (id: String, count: Int)?
    return filter { $0.kind != .start && $0.kind != .afterGap }.map { chapter in
      let id = chapter.rangeID
      // Several of a kind may be at one instant.
      let count = last.map { $0.id == id ? $0.count + 1 : 1 } ?? 1
      last = (id, count)
      return chapter.rangeTag(id + (count > 1 ? "-\(count)" : "") + place)
    }.joined()
  }
}
