// Time zones from the system's data base (RFC 8536). POSIX.1's `TZ` uses the same names. Foundation's `TimeZone` would add more to
// the start-up time than all code of this program.

import FileSystem

/// The rules of local time at a place.
package struct ZoneRules: Sendable, Equatable, CustomStringConvertible {
  package let description: String
  /// The instants, in unix seconds, from which each of `offsets` holds; the first offset holds before all of them.
  private var transitions: [Int64] = []
  /// Offsets in seconds east of Greenwich; one more than the transitions.
  private var offsets: [Int64] = [0]
  /// When the transitions end of a zone whose clocks go on changing, in unix seconds. Debian's files have them up to 2037.
  private var end = Int64.max

  private static let directory = "/usr/share/zoneinfo"

  package static let utc = ZoneRules()

  /// Whether it is UTC by name; other zones may have its offset at times.
  package var isUTC: Bool { ["UTC", "Z"].contains(description) }

  private init() { description = "UTC" }

  /// A zone of the same offset at all times.
  ///
  /// - Parameter text: `Z`, `UTC`, `+01:00`, `+0100` or `+01`.
  package init?(offset text: some StringProtocol) {
    description = String(text)
    if text == "Z" || text == "UTC" { return }
    let digits = String(text.dropFirst().filter { $0 != ":" })
    guard text.hasPrefix("+") || text.hasPrefix("-"), digits.utf8.allSatisfy({ (48...57).contains($0) }),
      [2, 4].contains(digits.utf8.count), let hours = Int64(digits.prefix(2)), hours <= 14,
      let minutes = digits.utf8.count == 2 ? 0 : Int64(digits.suffix(2)), minutes < 60
    else { return nil }
    offsets = [(hours * 3_600 + minutes * 60) * (text.hasPrefix("-") ? -1 : 1)]
  }

  /// Looks a zone up: an offset, or a name like `Europe/Berlin`.
  ///
  /// - Returns: nil if there is no zone of this name.
  /// - Throws: ``DiskError`` if the data base cannot be read.
  package init?(named name: String) throws(DiskError) {
    if let fixed = ZoneRules(offset: name) {
      self = fixed
      return
    }
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    let isPlain = parts.allSatisfy { part in
      part.first?.isLetter == true
        && part.utf8.allSatisfy { byte in
          (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || "_-+".utf8.contains(byte)
        }
    }
    guard isPlain, name.utf8.count <= 64 else { return nil }
    // A quarter of the names are links to others, relative or absolute.
    let path = DurableFile.resolved(Self.directory + "/" + name)
    guard path.hasPrefix(DurableFile.resolved(Self.directory) + "/"), !DurableFile.isReachableDirectory(path),
      let bytes = try DurableFile.contents(of: path, limit: 1 << 20)
    else { return nil }
    self.init(name, bytes)
  }

  /// Returns why a name is no zone, and what to write instead.
  static func fault(of name: String) -> String {
    let package: String? =
      if !DurableFile.isReachableDirectory(directory) {
        "this system has no zones: install Debian's package tzdata"
      } else if !DurableFile.isReachableDirectory(directory + "/US") {
        "older names are in Debian's package tzdata-legacy"
      } else {
        nil
      }
    return "no time zone '\(name.shortened(to: 64))'; write UTC, +01:00, or a name like Europe/Berlin"
      + (package.map { "; \($0)" } ?? "")
  }

  /// - Parameter bytes: a file of the data base: a block of version 1, a block of version 2, and a footer, `TZ` of POSIX.1 for later
  ///   times. A comma in it stands before the days of changes.
  private init?(_ name: String, _ bytes: [UInt8]) {
    description = name
    guard let first = ZoneBlock(bytes[...], timeBytes: 4), let second = ZoneBlock(bytes[first.end...], timeBytes: 8),
      let offsets = second.offsets
    else { return nil }
    transitions = second.transitions
    self.offsets = offsets
    if bytes[second.end...].contains(UInt8(ascii: ",")) { end = transitions.last ?? .min }
  }

  /// Returns the instants, in unix seconds, at which clocks show a local time: none in the hour that a change to summer time skips,
  /// two in the hour that a change back repeats; none after the end of the transitions.
  ///
  /// - Parameter local: the local time as if it were UTC, in unix seconds.
  func instants(atLocal local: Int64) -> [Int64] {
    Set(offsets).map { local - $0 }.filter { $0 < end && offset(at: $0) + $0 == local }.sorted()
  }

  /// Returns the latest time that clocks have shown up to an instant, as if it were UTC, in unix seconds. In an hour that clocks
  /// show twice, it stands still: a day that has begun stays begun where clocks go back at midnight.
  ///
  /// - Parameter instant: in unix seconds.
  package func latestLocal(at instant: Int64) -> Int64 {
    let index = transitions.partitioningIndex { $0 > instant }
    let local = instant + offsets[index]
    guard index > 0 else { return local }
    return max(local, transitions[index - 1] + offsets[index - 1] - 1)
  }

  /// Returns the seconds east of Greenwich at an instant; nil after the end of the transitions.
  ///
  /// - Parameter instant: in unix seconds.
  package func knownOffset(at instant: Int64) -> Int64? { instant < end ? offset(at: instant) : nil }

  /// Whether a local time is after the end of the transitions.
  func endsBefore(local: Int64) -> Bool { local - offset(at: local) >= end }

  private func offset(at instant: Int64) -> Int64 { offsets[transitions.partitioningIndex { $0 > instant }] }
}

/// One block of a file of the data base (RFC 8536, 3.1 and 3.2).
private struct ZoneBlock {
  private(set) var transitions: [Int64] = []
  /// The offset before the first transition, and after each; nil for an invalid block.
  private(set) var offsets: [Int64]?
  let end: Int

  init?(_ bytes: ArraySlice<UInt8>, timeBytes: Int) {
    func number(at start: Int, _ count: Int) -> Int64 {
      let value = bytes[start..<start + count].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return count == 4 ? Int64(Int32(truncatingIfNeeded: value)) : Int64(bitPattern: value)
    }
    let start = bytes.startIndex
    guard bytes.count >= 44, bytes.starts(with: "TZif".utf8), bytes[start + 4] >= UInt8(ascii: "2") else { return nil }
    // Counts of indicators of UT and of standard time, of leap seconds, transitions, types and characters.
    let counts = (0..<6).map { Int(number(at: start + 20 + 4 * $0, 4)) }
    guard counts.allSatisfy({ (0...100_000).contains($0) }) else { return nil }
    let (times, types) = (counts[3], counts[4])
    let size =
      44 + times * (timeBytes + 1) + types * 6 + counts[5] + counts[2] * (timeBytes + 4) + counts[1] + counts[0]
    // With leap seconds, times are no unix times: the names that begin with `right/`.
    guard bytes.count >= size, counts[2] == 0 else { return nil }
    end = start + size
    let typeStart = start + 44 + times * (timeBytes + 1)
    transitions = (0..<times).map { number(at: start + 44 + $0 * timeBytes, timeBytes) }
    let indexes = [0] + (0..<times).map { Int(bytes[start + 44 + times * timeBytes + $0]) }
    guard types > 0, indexes.allSatisfy({ $0 < types }) else { return }
    offsets = indexes.map { number(at: typeStart + 6 * $0, 4) }
  }
}

extension [Int64] {
  /// Returns the first index whose element satisfies a predicate. All later elements must satisfy it too.
  fileprivate func partitioningIndex(where predicate: (Int64) -> Bool) -> Int {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if predicate(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
