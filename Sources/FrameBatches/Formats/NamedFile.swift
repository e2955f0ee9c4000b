// The instants of files with times in their names: their order, seconds with several files, and names that tell other times.

import FileSystem

extension NamedTimesFormat {
  /// A file with the time in its name.
  struct NamedFile {
    let path: String
    let time: NamedTime
    var instant: Int64?
    var note: String?
  }

  /// Puts files into the order of their sequence, if it numbers all files of the batch and not those of each second.
  static func ordered(_ files: [NamedFile], _ draft: inout BatchDraft) -> [NamedFile] {
    let numbers = files.compactMap(\.time.sequence)
    guard files.count > 2, numbers.count == files.count, Set(numbers).count == files.count else { return files }
    draft.isListed = true
    return files.sorted { ($0.time.sequence ?? 0) < ($1.time.sequence ?? 0) }
  }

  /// Number of frames in one second that is suspicious in any batch, and in a batch that has most frames in that second.
  private static let (crowd, smallCrowd) = (60, 10)

  /// Returns warnings if names probably tell other times than the patterns read.
  static func warnings(on files: [NamedFile], _ patterns: [NamePattern]) -> [String] {
    var warnings: [String] = []
    let isBlind = patterns.contains(where: \.hasHours) && !patterns.contains(where: \.hasHalfDays)
    let halfDays = isBlind ? files.filter { NameAdvice.isHalfDay($0.path) } : []
    if let first = halfDays.first {
      warnings.append(
        "\(halfDays.count) of \(files.count) names have AM or PM, which the pattern does not read: their times can be twelve "
          + "hours off, the first is \(lastComponent(of: first.path).shortened(to: 80))")
    }
    let whole = files.filter { $0.time.isWholeSecond && $0.instant != nil }
    let seconds = Dictionary(grouping: whole) { ($0.instant ?? 0).flooredDivision(by: 1_000) }
    guard let (second, crowded) = seconds.max(by: { ($0.value.count, $1.key) < ($1.value.count, $0.key) }),
      crowded.count > crowd || crowded.count >= smallCrowd && 2 * crowded.count > files.count
    else { return warnings }
    return warnings + [
      "\(crowded.count) of \(files.count) names tell the same second, \(second * 1_000) in unix milliseconds: "
        + (crowded.allSatisfy { $0.time.sequence != nil }
          ? "the pictures were spread over it, about \(1_000 / crowded.count) ms apart"
          : "check that the pattern reads the right digits")
    ]
  }

  /// Spreads the frames of each second over it, in the order of their sequence, if their names contain no fraction of it.
  static func spread(_ files: [NamedFile]) -> [NamedFile] {
    var files = files
    let seconds = Dictionary(
      grouping: files.indices.filter { files[$0].time.isWholeSecond && files[$0].time.sequence != nil }
    ) {
      files[$0].instant
    }
    for (instant, indexes) in seconds where indexes.count > 1 {
      guard let instant else { continue }
      // Two files of one number, such as a picture and its thumbnail, are of one instant.
      let numbers = Set(indexes.map { files[$0].time.sequence ?? 0 }).sorted()
      let places = Dictionary(uniqueKeysWithValues: numbers.enumerated().map { ($0.element, $0.offset) })
      for index in indexes where numbers.count > 1 {
        let place = places[files[index].time.sequence ?? 0] ?? 0
        files[index].instant = instant + Int64(place) * files[index].time.spanMs / Int64(numbers.count)
        let span = files[index].time.spanMs == 1_000 ? "second" : "minute"
        files[index].note = "frame \(place + 1) of \(numbers.count) in its \(span), which were spread over it"
      }
    }
    return files
  }
}
