// Modification times as capture times. File systems and copies keep whole seconds only (FAT: every second one), so that several files
// have one time.

import FileSystem

package enum ModifiedTimes {
  /// A capture time, and how it differs from the time of the file.
  package struct Spread {
    package var timeMs: Int64
    package fileprivate(set) var note: String?
  }

  /// Number of different times that tell the steps of a file system.
  private static let steps = 4

  /// Spreads the files of one time over its second, in the order of the files; those of a time with a fraction are a millisecond apart.
  /// No file reaches the next time. Two files whose names differ in the suffix alone, such as a picture and its raw file, have one time.
  ///
  /// - Parameter nextMs: the time of the next file, which is not among these; nil if it is not known.
  package static func spread(_ files: [(name: String, timeMs: Int64)], before nextMs: Int64? = nil) -> [Spread] {
    var spread = files.map { Spread(timeMs: $0.timeMs) }
    let groups = Dictionary(grouping: files.indices) { files[$0].timeMs }
    let instants = groups.keys.sorted()
    let isFAT = instants.count >= steps && instants.allSatisfy { $0 % 2_000 == 0 }
    for (instant, next) in zip(instants, instants.dropFirst().map(Optional.init) + [nextMs]) {
      guard let group = groups[instant], group.count > 1 else { continue }
      var places = [0]
      for (index, previous) in zip(group.dropFirst(), group) {
        places.append(places[places.count - 1] + (isSamePicture(files[previous].name, files[index].name) ? 0 : 1))
      }
      let count = Int64(places[places.count - 1] + 1)
      let spanMs = min(instant % 1_000 == 0 ? isFAT ? 2_000 : 1_000 : count, next.map { $0 - instant } ?? .max)
      for (index, place) in zip(group, places) where count > 1 {
        spread[index].timeMs += Int64(place) * max(spanMs, 0) / count
        spread[index].note = "file \(place + 1) of \(count) of one modification time, which were spread by their names"
      }
    }
    return spread
  }

  private static func isSamePicture(_ one: String, _ other: String) -> Bool {
    one != other && PictureNames.stem(of: one) == PictureNames.stem(of: other)
  }

  /// Whether a name comes before another one. Numbers in names are compared as numbers.
  package static func isBefore(_ one: String, _ other: String) -> Bool {
    var (left, right) = (Array(one.utf8)[...], Array(other.utf8)[...])
    while let first = left.first, let second = right.first {
      guard isDigit(first), isDigit(second) else {
        if first != second { return first < second }
        (left, right) = (left.dropFirst(), right.dropFirst())
        continue
      }
      let (number, otherNumber) = (takeNumber(&left), takeNumber(&right))
      if number.count != otherNumber.count { return number.count < otherNumber.count }
      if number != otherNumber { return number.lexicographicallyPrecedes(otherNumber) }
    }
    return left.isEmpty && right.isEmpty ? one < other : left.isEmpty
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

  /// Takes the digits at the beginning of a text, without zeros before the number.
  private static func takeNumber(_ text: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let digits = text.prefix(while: isDigit)
    text = text[digits.endIndex...]
    return digits.drop { $0 == 48 }
  }

  // MARK: - Times of a copy

  /// Returns the number of files with the most frequent time, and that time, if nearly all files have it: then it orders nothing.
  static func sameTime(of times: [Int64]) -> (count: Int, timeMs: Int64)? {
    let counts = Dictionary(grouping: times) { $0 }.mapValues(\.count)
    guard let most = counts.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }), most.value > 3,
      10 * most.value >= 9 * times.count || most.value >= fewFiles && 2 * most.value > times.count
    else { return nil }
    return (most.value, most.key)
  }

  /// Number of files that may have one time, or follow each other fast, without a doubt.
  private static let fewFiles = 10
  /// Milliseconds between files of a copy. Few recorders take 50 pictures a second.
  private static let copyMs: Int64 = 20

  /// Returns a warning if most files follow each other as fast as a program copies them.
  static func warning(on times: [Int64]) -> String? {
    let sorted = times.sorted()
    let near = zip(sorted.dropFirst(), sorted).count { $0 - $1 < copyMs }
    guard near >= fewFiles, 2 * near > sorted.count, let first = sorted.first, let last = sorted.last else {
      return nil
    }
    return "\(near + 1) of \(sorted.count) files were modified less than \(copyMs) ms after each other, and all within "
      + "\(last - first) ms: these are probably the times of a copy, not of the captures"
  }
}
