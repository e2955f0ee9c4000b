/// Facts about decoded files that advice on a batch depends on: of one file, or the sums of all.
package struct PictureFacts: Sendable, Equatable {
  /// The number of files of which only the first picture is shown.
  package var several = 0
  /// The number of pictures in these files that are not shown.
  package var leftOut = 0
  /// The number of these files whose further pictures only other programs read.
  package var unread = 0
  /// The number of pictures of 16 bits a sample for which neither the file nor an option says how many of them are used.
  package var wide = 0
  /// The highest sample of these pictures.
  package var highest = 0

  package init() {}

  mutating func add(_ other: PictureFacts) {
    several += other.several
    leftOut += other.leftOut
    unread += other.unread
    wide += other.wide
    highest = max(highest, other.highest)
  }

  /// Warnings about pictures that are not shown, or shown too dark.
  package var warnings: [String] { [adviceOnPictures, adviceOnBits].compactMap { $0 } }

  private var adviceOnPictures: String? {
    guard leftOut > 0 else { return nil }
    let counts =
      "\(several == 1 ? "a file has" : "\(several) files have") several pictures, of which the first is shown and "
      + "\(leftOut) \(leftOut == 1 ? "is" : "are") left out; "
    return counts
      + (unread < several
        ? "to show all, give such a file to film or encode alone, not beside other pictures"
        : "to show all, give such a file itself to film, or to reencode with --start")
  }

  /// Bits of samples that cameras store in 16.
  private static let usualBits = [8, 10, 12, 14]

  private var adviceOnBits: String? {
    guard wide > 0, highest > 0, let bits = Self.usualBits.first(where: { highest < 1 << $0 }) else { return nil }
    return
      "no sample of the \(wide == 1 ? "picture" : "\(wide) pictures") of 16 bits is above \(highest) of 65535, so that all is dark; "
      + "if the samples have \(bits) bits, --bits \(bits) scales them"
  }
}
