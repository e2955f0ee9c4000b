import FrameBatches

/// The folder that names a session. Folders of dates belong to the folder above them.
struct SessionFolder: Hashable {
  /// The folders from the watched one down, without dates; none for the watched one itself.
  let parts: [String]

  /// - Parameter path: of a folder, from the watched one; empty for that one.
  init(of path: String) {
    var parts: [String] = []
    var isInDay = false
    var rest = path.split(separator: "/")[...]
    while let name = rest.first {
      if let length = Self.lengthOfDate(rest) {
        isInDay = true
        rest = rest.dropFirst(length)
        continue
      }
      // Cameras have folders for hours and minutes in those of days.
      if !(isInDay && Self.isTimeOfDay(name)) { parts.append(String(name)) }
      rest = rest.dropFirst()
    }
    self.parts = parts
  }

  /// The watched folder itself.
  var isTop: Bool { parts.isEmpty }

  /// The path from the watched folder.
  var path: String { parts.joined(separator: "/") }

  /// The name of its session: `floor1.kiosk-07` for `floor1/kiosk-07`.
  ///
  /// - Parameter top: the name for the watched folder's own session; nil if the user gives none.
  func session(below top: String?) -> String { ((top.map { [$0] } ?? []) + parts).joined(separator: ".") }

  /// Returns how many of the first folders are a date: one `2026-11-25` or `20261125`, or three, `2026/11/25`; nil if they are none.
  private static func lengthOfDate(_ folders: ArraySlice<Substring>) -> Int? {
    guard let first = folders.first else { return nil }
    if isDate(first) { return 1 }
    let three = folders.prefix(3)
    return three.map(\.utf8.count) == [4, 2, 2] && isDate(three.joined(separator: "-")[...]) ? 3 : nil
  }

  private static func isDate(_ name: Substring) -> Bool {
    let parts: [Substring]
    if name.utf8.count == 8 {
      let (year, rest) = (name.prefix(4), name.dropFirst(4))
      parts = [year, rest.prefix(2), rest.dropFirst(2)]
    } else {
      guard let mark = ["-", "_", "."].first(where: name.contains) else { return false }
      parts = name.split(separator: mark, omittingEmptySubsequences: false)
    }
    guard parts.map(\.utf8.count) == [4, 2, 2], let year = number(parts[0]), let month = number(parts[1]),
      let day = number(parts[2])
    else { return false }
    return (2000...2099).contains(year) && CivilTime(year: year, month: month, day: day) != nil
  }

  private static func isTimeOfDay(_ name: Substring) -> Bool {
    name.utf8.count <= 2 && number(name).map { $0 < 60 } ?? false
  }

  private static func number(_ text: Substring) -> Int64? {
    text.utf8.allSatisfy { (48...57).contains($0) } ? Int64(text) : nil
  }
}
