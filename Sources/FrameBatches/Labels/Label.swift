import FileSystem
import JSON

/// A text at an instant or over a span of a session: a step, a caption, a log line, an error, a key, a page, a mark. It changes neither
/// the pictures nor the digest of its batch.
package struct Label: Sendable, Equatable {
  package enum Level: String, Sendable, CaseIterable {
    case info, warning, error
  }

  /// The kinds that views know. Others are kept as they are.
  package enum Kind {
    package static let (step, caption, page, mark, error) = ("step", "caption", "page", "mark", "error")
    package static let (log, key) = ("log", "key")
  }

  /// In unix milliseconds.
  package let timeMs: Int64
  /// The end of its span in unix milliseconds; nil for an instant.
  package let endMs: Int64?
  package let kind: String
  /// Not empty. It may have several lines.
  package let text: String
  package let level: Level?
  /// Further facts of the producer, an object; nil if there are none.
  package let data: JSONValue?

  /// Maximum bytes of each part. Manifests repeat none of them.
  static let (textBytes, kindBytes, dataBytes) = (4_096, 64, 4_096)

  /// - Parameters:
  ///   - endMs: not after `timeMs` for an instant.
  ///   - text: control characters become spaces, and what is too long is cut.
  /// - Returns: nil if nothing is left of the text.
  package init?(
    timeMs: Int64, endMs: Int64? = nil, kind: String, text: String, level: Level? = nil, data: JSONValue? = nil
  ) {
    let text = Self.clean(text)
    guard !text.isEmpty else { return nil }
    (self.timeMs, self.endMs) = (timeMs, endMs.flatMap { $0 > timeMs ? $0 : nil })
    self.kind = kind.isEmpty ? Kind.mark : kind.oneLine.shortened(to: Self.kindBytes)
    (self.text, self.level, self.data) = (text, level, data)
  }

  /// The same label at another time.
  func at(_ time: (Int64) -> Int64) -> Label? {
    Label(timeMs: time(timeMs), endMs: endMs.map(time), kind: kind, text: text, level: level, data: data)
  }

  /// The number of bytes that count for the limit of a batch.
  var size: Int { text.utf8.count + kind.utf8.count + (data?.bytes().count ?? 0) }

  /// Returns the text without control characters but ends of lines, and without empty lines around it.
  private static func clean(_ text: String) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in text.replacing("\r\n", with: "\n").unicodeScalars {
      switch scalar.value {
      case 0x0A: scalars.append(scalar)
      case 0x0D, 0x85, 0x2028, 0x2029: scalars.append("\n")
      case 0..<0x20, 0x7F..<0xA0: scalars.append(" ")
      default: scalars.append(scalar)
      }
    }
    return String(scalars).trimmed.cut(to: textBytes)
  }
}

extension String {
  /// The text without white space at its ends.
  fileprivate var trimmed: String {
    let start = firstIndex { !$0.isWhitespace } ?? endIndex
    let end = lastIndex { !$0.isWhitespace }.map { index(after: $0) } ?? start
    return String(self[start..<end])
  }
}

// MARK: - JSON

extension Label {
  /// Instants that views can count with, in unix milliseconds.
  private static let times: ClosedRange<Int64> = 0...1 << 42
  private static let keys: Set = ["timeMs", "endMs", "kind", "text", "level", "data"]

  /// Reads an entry of `labels`.
  ///
  /// - Parameter defaultKind: of an entry that states none.
  package init(_ json: JSONValue, defaultKind: String = Kind.mark) throws(JSONError) {
    let timeMs = try json.required("timeMs", in: Self.times)
    let endMs = try json.optional("endMs", .integer)
    if let endMs {
      guard endMs >= timeMs else { throw JSONError("endMs is before timeMs") }
      guard Self.times.contains(endMs) else { throw JSONError("endMs: out of range") }
    }
    let word = try json.optional("level", .string)
    let level = word.flatMap(Level.init)
    if let word, level == nil {
      throw JSONError("level: \"\(word.shortened(to: 40).oneLine)\" is none of info, warning and error")
    }
    let data = try json.optional("data", .object)
    if let data {
      guard data.isStrict else { throw JSONError("data: NaN and Infinity are no JSON") }
      guard data.bytes().count <= Self.dataBytes else { throw JSONError("data: more than \(Self.dataBytes) bytes") }
    }
    if let key = UnknownKey.all(in: json, besides: Self.keys).first(where: \.mayHide) {
      throw JSONError("\(key.place) is not known, and may have been meant to hide it")
    }
    let kind = try json.optional("kind", .string) ?? defaultKind
    let text = try json.required("text", .string)
    guard
      let label = Label(timeMs: timeMs, endMs: endMs, kind: kind, text: text, level: level, data: data)
    else { throw JSONError("text: nothing in it") }
    self = label
  }

  /// As `batch.json` and manifests have it.
  package var json: JSONValue {
    var members: [String: JSONValue] = [
      "timeMs": .number(timeMs), "kind": .string(kind), "text": .string(text),
    ]
    members["endMs"] = endMs.map { .number($0) }
    members["level"] = level.map { .string($0.rawValue) }
    members["data"] = data
    return .object(members)
  }
}
