// A list of capture times beside the pictures: ffmpeg's concat list, a table (CSV, TSV, the lists of TUM's data sets), or lines of JSON.
// The names in it are compared with those of the batch: no file that it names is ever opened.

import FileSystem

/// The capture times of pictures, by their names.
package struct TimeList: Sendable, Equatable {
  /// A line that tells the time of a picture.
  struct Entry: Sendable, Equatable {
    let line: Int
    let file: String
    /// In a list of durations, the time counts from the first picture.
    let time: NamedTime
  }

  /// A line that cannot be used.
  struct Fault: Sendable, Equatable {
    let line: Int
    let reason: String
  }

  /// Where the list lies.
  enum Location: Sendable, Equatable {
    /// The absolute path of its file, without links.
    case file(String)
    /// Its name in the batch.
    case batch(String)
  }

  let place: Location
  let entries: [Entry]
  let faults: [Fault]
  /// Whether the times count from the first picture: durations.
  package let isRelative: Bool
  /// The end of the last picture's hold, counted from the first picture; nil if the list does not tell it.
  let endMs: Int64?

  /// The list's name in messages.
  var name: String {
    switch place {
    case .file(let path), .batch(let path): lastComponent(of: path)
    }
  }

  /// Maximum number of bytes of a list.
  static let mostBytes = 64 << 20
  private static let (mostLines, mostLineBytes) = (1_000_000, 4_096)

  /// Reads a list that the user names.
  ///
  /// - Returns: nil if there is no such file.
  package init?(reading path: String, zone: ZoneRules?) throws(InvalidOption) {
    let bytes: [UInt8]?
    do {
      let resolved = DurableFile.resolved(path)
      guard !DurableFile.isReachableDirectory(resolved) else { return nil }
      bytes = try DurableFile.contents(of: resolved, limit: Self.mostBytes)
    } catch {
      throw InvalidOption(.times, "\(error)")
    }
    guard let bytes else { return nil }
    try self.init(bytes, at: .file(DurableFile.resolved(path)), zone: zone)
  }

  /// - Parameter zone: that of local times.
  init(_ bytes: [UInt8], at place: Location, zone: ZoneRules?) throws(InvalidOption) {
    self.place = place
    let name = if case .file(let path) = place { lastComponent(of: path) } else { "the list" }
    func bad(_ cause: String) -> InvalidOption { InvalidOption(.times, "\(name): \(cause)") }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw bad("not UTF-8") }
    var lines: [TimeListLine] = []
    for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
      let content = line.drop { $0.isWhitespace || $0 == "\u{FEFF}" }
      guard !content.isEmpty, content.first != "#" else { continue }
      guard lines.count < Self.mostLines else { throw bad("more than \(Self.mostLines) lines") }
      guard content.utf8.count <= Self.mostLineBytes else {
        throw bad("line \(index + 1): more than \(Self.mostLineBytes) bytes")
      }
      lines.append(TimeListLine(number: index + 1, text: content))
    }
    do throws(TimeListError) {
      if ConcatList.isOne(lines) {
        let list = try ConcatList(lines)
        (entries, faults, endMs, isRelative) = (list.entries, list.faults, list.endMs, true)
      } else {
        let table = try TimeTable(lines, zone: zone)
        (entries, faults, endMs, isRelative) = (table.entries, table.faults, nil, table.isRelative)
      }
    } catch {
      throw bad(error.cause)
    }
  }
}

/// A line of a list that is neither empty nor a comment.
struct TimeListLine {
  let number: Int
  let text: Substring
}

/// The reason why a list as a whole cannot be used.
struct TimeListError: Error {
  let cause: String
}
