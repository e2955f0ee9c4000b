// In autumn, clocks show one hour twice: a local time in it is one of two instants. `ZoneRules` returns both.

extension NamedTimesFormat {
  /// Chooses between the two instants of a time that clocks showed twice, if the order of the sequence allows only one of them, or the
  /// times when the files were last modified tell it.
  static func resolved(_ files: [NamedFile], in contents: any BatchContents) -> [NamedFile] {
    var files = files
    guard files.contains(where: { $0.time.instants.count > 1 }) else {
      for index in files.indices { files[index].instant = files[index].time.instants.first }
      return files
    }
    let timed = files.indices.filter { !files[$0].time.instants.isEmpty }
    let sequence = timed.compactMap { files[$0].time.sequence }
    for index in timed where files[index].time.instants.count == 1 {
      files[index].instant = files[index].time.instants[0]
    }
    guard sequence.count == timed.count, Set(sequence).count == timed.count else {
      return resolvedByModification(files, in: contents)
    }
    let order = timed.sorted { (files[$0].time.sequence ?? 0) < (files[$1].time.sequence ?? 0) }
    guard let earliest = monotonic(order.map { files[$0].time.instants }),
      let latest = monotonic(order.reversed().map { files[$0].time.instants.reversed().map { -$0 } })
    else { return files }
    for (index, (early, late)) in zip(order, zip(earliest, latest.reversed())) where early == -late {
      files[index].instant = early
    }
    return files
  }

  /// Milliseconds between a capture and the end of writing its file, at most: much less than clocks go back.
  private static let longestWriteMs: Int64 = 600_000

  /// Chooses the instants by the times when the files were last modified. A copy may have other times: if those of one file are near
  /// none of its instants, no file has an instant.
  private static func resolvedByModification(_ files: [NamedFile], in contents: any BatchContents) -> [NamedFile] {
    var resolved = files
    for index in files.indices where files[index].time.instants.count > 1 {
      guard let modifiedMs = (try? contents.modifiedMs(files[index].path)) ?? nil,
        let instant = files[index].time.instants.first(where: { (-2_000...longestWriteMs).contains(modifiedMs - $0) })
      else { return files }
      resolved[index].instant = instant
      resolved[index].note = "clocks showed its time twice; its modification time tells which it is"
    }
    return resolved
  }

  /// Returns the lowest choices that do not decrease; nil if there are none.
  private static func monotonic(_ choices: [[Int64]]) -> [Int64]? {
    var chosen: [Int64] = []
    for each in choices {
      guard let next = each.first(where: { $0 >= chosen.last ?? .min }) else { return nil }
      chosen.append(next)
    }
    return chosen
  }
}
