/// The English name of a month at the beginning of a text, in any case.
struct MonthName {
  private static let names = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
  ].map { Array($0.utf8) }
  private static let shortLength = 3

  /// 1 for January.
  let number: Int64
  /// The numbers of bytes that can be the name, the largest first.
  let lengths: [Int]

  /// - Returns: nil for a text that does not begin with a month's name or its first three letters.
  init?(at text: ArraySlice<UInt8>) {
    let letters = text.prefix(9).map { $0 | 0x20 }
    guard letters.count >= Self.shortLength,
      let index = Self.names.firstIndex(where: { $0.prefix(Self.shortLength) == letters[..<Self.shortLength] })
    else { return nil }
    let name = Self.names[index]
    number = Int64(index + 1)
    lengths = (name.count > Self.shortLength && letters.starts(with: name) ? [name.count] : []) + [Self.shortLength]
  }
}
