// The pattern of file names that carry a capture time: text, and fields that begin with a percent sign as in strftime(3).

import FileSystem

/// A pattern of file names without the suffix. One with a `/` describes the folders before the name, too.
package struct NamePattern: Sendable, Equatable, CustomStringConvertible {
  /// A part of a name.
  enum Field: Equatable {
    case literal(UInt8)
    /// Any one space of Unicode: macOS writes a narrow one before AM and PM.
    case space
    case digits(Part, ClosedRange<Int>)
    /// The English name of a month, in full or its first three letters.
    case monthName
    /// AM or PM, as a program of any of several languages writes it.
    case halfDay
    /// Unix seconds, with or without a fraction.
    case seconds
    /// `Z`, `+01:00`, `+0100` or `+01`.
    case zone
    /// One or more characters that become the session, or its key.
    case group
    /// Any characters, or none.
    case anything

    /// Whether it matches digits only, as a number.
    var isNumber: Bool {
      switch self {
      case .digits, .seconds: true
      default: false
      }
    }

    /// Whether it is a number of one or more digits.
    fileprivate var hasAnyWidth: Bool {
      switch self {
      case .digits(_, let counts): counts.count > 1
      case .seconds: true
      default: false
      }
    }
  }

  /// The numbers of a name.
  enum Part: Hashable {
    case year, month, day, hour, minute, second
    /// The year without its century: 2000 to 2068.
    case shortYear
    /// The day of the year.
    case yearDay
    /// The hour of a 12-hour clock.
    case halfDayHour
    /// Digits behind the second's point.
    case fraction
    /// Unix milliseconds; microseconds with 16 digits, nanoseconds with 19, and ticks of .NET with 18.
    case unix
    /// Orders the frames of a second.
    case sequence
  }

  /// The capture time and the other fields of a name.
  struct Match {
    var digits: [Part: ArraySlice<UInt8>] = [:]
    /// The number of a month whose name is there.
    var namedMonth: Int64?
    /// Whether the name has PM; nil without AM or PM.
    var isAfternoon: Bool?
    var seconds: ArraySlice<UInt8>?
    var zone: ArraySlice<UInt8>?
    var group: String?
    /// The text that is in no other field, joined; nil without any.
    var text: String?
    /// Whether the pattern has a sequence, perhaps an optional one.
    fileprivate(set) var isNumbered = false

    func number(_ part: Part) -> Int64? { digits[part].flatMap { Int64(String(decoding: $0, as: UTF8.self)) } }

    /// Whether it has unix seconds with a fraction.
    var hasFraction: Bool { seconds?.contains(UInt8(ascii: ".")) ?? false }

    /// Whether it is a local time without its zone.
    var needsZone: Bool { zone == nil && digits[.minute] != nil }

    /// Orders the frames of a second: 0 for a name that leaves an optional sequence out.
    var sequence: Int64? { number(.sequence) ?? (isNumbered ? 0 : nil) }

    /// The hour of the day; nil for one that a clock does not show.
    var hour: Int64? {
      guard let isAfternoon else { return number(.hour) }
      guard let hour = number(.halfDayHour), (0...12).contains(hour) else { return nil }
      return hour % 12 + (isAfternoon ? 12 : 0)
    }

    /// The date and the time of day; nil if there is none.
    var civilTime: CivilTime? {
      guard let year = number(.year) ?? number(.shortYear).map({ $0 + ($0 < 69 ? 2_000 : 1_900) }),
        let hour, let minute = number(.minute)
      else { return nil }
      let second = number(.second) ?? 0
      if let yearDay = number(.yearDay) {
        return CivilTime(year: year, yearDay: yearDay, hour: hour, minute: minute, second: second)
      }
      guard let month = number(.month) ?? namedMonth, let day = number(.day) else { return nil }
      return CivilTime(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
    }

    /// Unix time, rounded to milliseconds.
    var unixMs: Int64? {
      switch digits[.unix]?.count {
      case 18: number(.unix).flatMap(CivilTime.unixMs(ofTicks:))
      case 19: number(.unix)?.roundedDivision(by: 1_000_000)
      case 16: number(.unix)?.roundedDivision(by: 1_000)
      default: number(.unix)
      }
    }
  }

  package let description: String
  /// The fields, with and without each optional part; all parts first.
  private let alternatives: [[Field]]

  /// The fields, for help and messages.
  package static let rule =
    "use %Y %m %d %H %M %S (%y: two digits; %b: Jan or January; %j: day of the year; %I %p: a 12-hour clock; %-H: one or two digits), %s (unix seconds), %Q (unix milliseconds), %L (milliseconds), %f (fraction), %z (zone), %q (sequence), %g (session), %* (anything), [ ] (optional), / (folders), %% %[ %]"

  /// - Returns: nil for a pattern with an unknown field, without a time, or with a time that could be read in two ways.
  package init?(_ text: String) {
    guard let alternatives = NamePatternParser.alternatives(of: text), alternatives.allSatisfy(Self.isUsable),
      Set(alternatives.map(Self.hasTime)).count == 1
    else { return nil }
    description = text
    self.alternatives = alternatives
  }

  /// - Parameter text: a pattern of names with or without the suffix of pictures.
  init?(ofName text: String) {
    self.init(PictureNames.isPicture(text) ? String(text[..<(text.lastIndex(of: ".") ?? text.endIndex)]) : text)
  }

  /// Whether fields tell one time, or only one number, in one way.
  private static func isUsable(_ fields: [Field]) -> Bool {
    // A field that occurs twice could have two values.
    let named = parts(of: fields)
    let once = [.seconds, .zone, .group, .halfDay].map { field in fields.count { $0 == field } }
    guard Set(named).count == named.count, once.allSatisfy({ $0 <= 1 }) else { return false }
    guard fields.count <= 255, fields.count(where: { $0 == .anything }) <= 16 else { return false }
    // Of `%-H%-M`, 123 could be 1:23 or 12:03.
    let numbers = fields.split { !$0.isNumber }
    guard numbers.allSatisfy({ $0.count { $0.hasAnyWidth } <= 1 }) else { return false }
    let has = Set(named).contains
    let hasHalfDay = fields.contains(.halfDay)
    guard has(.halfDayHour) == hasHalfDay, !(has(.hour) && hasHalfDay) else { return false }
    guard !(has(.yearDay) && (has(.month) || has(.day))), has(.second) || fields.contains(.seconds) || !has(.fraction)
    else { return false }
    let missing = missing(in: fields)
    let times = [fields.contains(.seconds), has(.unix), missing?.isEmpty == true]
    // Refuse an incomplete date.
    guard times[2] || missing == nil && !fields.contains(.zone) else { return false }
    return times.count { $0 } == 1 || !times.contains(true) && has(.sequence)
  }

  /// Returns the numbers that fields tell. A number may be told in two ways.
  private static func parts(of fields: [Field]) -> [Part] {
    fields.compactMap { field in
      switch field {
      case .digits(.shortYear, _): .year
      case .digits(let part, _): part
      case .monthName: .month
      default: nil
      }
    }
  }

  /// Returns the fields that a date and a time of day lack; nil if there is no field of either. Seconds may be missing.
  private static func missing(in fields: [Field]) -> [String]? {
    let named = Set(parts(of: fields))
    let day: [(Part, String)] = named.contains(.yearDay) ? [(.yearDay, "%j")] : [(.month, "%m"), (.day, "%d")]
    let hour = named.contains(.halfDayHour) ? Part.halfDayHour : .hour
    let wanted = [(.year, "%Y")] + day + [(hour, "%H"), (.minute, "%M")]
    guard named.contains(.second) || wanted.contains(where: { named.contains($0.0) }) else { return nil }
    return wanted.filter { !named.contains($0.0) }.map(\.1)
  }

  /// Returns why a text is no pattern.
  static func fault(of text: String) -> String {
    let shown = "'\(text.shortened(to: 80))'"
    for fields in NamePatternParser.alternatives(of: text) ?? [] {
      guard !fields.contains(.seconds), let missing = missing(in: fields), !missing.isEmpty else { continue }
      let isDateless = missing.starts(with: ["%Y", "%m", "%d"])
      return "\(shown) lacks \(isDateless ? "the date, " : "")\(missing.joined(separator: " "))"
        + (isDateless ? "; folders may tell it, as in '%Y-%m-%d/%H-%M-%S'" : "") + "; \(rule)"
    }
    return "\(shown) is no pattern of one capture time; \(rule)"
  }

  /// Whether names contain a time; else they contain a number only.
  var hasTime: Bool { Self.hasTime(alternatives[0]) }

  private static func hasTime(_ fields: [Field]) -> Bool {
    fields.contains { field in
      switch field {
      case .seconds: true
      case .digits(let part, _): part != .sequence
      default: false
      }
    }
  }

  /// Whether names contain a local time without its zone.
  var needsZone: Bool {
    alternatives.contains { fields in
      !fields.contains(.zone) && fields.contains { if case .digits(.minute, _) = $0 { true } else { false } }
    }
  }

  /// Whether names contain the hour of a 24-hour clock.
  var hasHours: Bool {
    alternatives.contains { $0.contains { if case .digits(.hour, _) = $0 { true } else { false } } }
  }

  /// Whether names contain a half of the day: AM or PM.
  var hasHalfDays: Bool {
    alternatives.contains { $0.contains { if case .halfDay = $0 { true } else { false } } }
  }

  /// Whether the pattern describes folders.
  package var hasFolders: Bool { alternatives.contains { $0.contains(.literal(UInt8(ascii: "/"))) } }

  private var isNumbered: Bool {
    alternatives.contains { $0.contains { if case .digits(.sequence, _) = $0 { true } else { false } } }
  }

  /// Maximum number of bytes of a name with its folders.
  private static let longest = 1_023

  /// Reads the end of a path, as many folders as the pattern has.
  ///
  /// - Parameter path: without the suffix of the name.
  /// - Returns: nil for a path of another pattern.
  func match(_ path: some StringProtocol) -> Match? {
    let path = Array(path.utf8)
    for fields in alternatives {
      let folders = fields.count { $0 == .literal(Self.slash) }
      guard let name = Self.end(of: path, folders: folders) else { continue }
      var search = NamePatternSearch(fields, Array(name))
      if var found = search.found() {
        found.isNumbered = isNumbered
        return found
      }
    }
    return nil
  }

  private static let slash = UInt8(ascii: "/")

  /// Returns the last name of a path with the folders before it; nil if there are fewer, or if it is too long for a search.
  static func end(of path: [UInt8], folders: Int) -> ArraySlice<UInt8>? {
    let slashes = path.indices.filter { path[$0] == slash }
    guard slashes.count >= folders else { return nil }
    let end = slashes.count == folders ? path[...] : path[(slashes[slashes.count - 1 - folders] + 1)...]
    return end.count <= (folders == 0 ? 255 : longest) ? end : nil
  }
}
