// A record without its long texts, small enough to be parsed as a whole. Each text that is a value ends in the place of its
// literal, quotes included: "screenshot 120+12". A long text is that place alone: " 4711+80000".

import JSON

/// A part of the text that can be parsed by itself.
enum RecordPiece {
  /// An element of a list of events. The record that contains it follows later. `isOfSession` is false for a recorder's request:
  /// then that record names the session.
  case event(Skeleton, isOfSession: Bool)
  case record(Skeleton)
  /// An unreadable part. It ends the record of the last events.
  case broken(offset: Int, reason: String)
}

/// A record or event as it stands in a text.
struct Skeleton {
  /// The place of the record in the text.
  let range: Range<Int>
  /// The name of its window, which precedes it in the same list or is the key of its list; nil for most records.
  let window: String?
  /// The bytes of the skeleton; nil if they exceed the limit.
  let bytes: [UInt8]?

  /// - Throws: ``JSONError``.
  func parsed() throws(JSONError) -> JSONValue {
    guard let bytes else { throw JSONError("larger than it may be, at byte \(range.lowerBound)") }
    do {
      // Invalid UTF-8, such as half a surrogate pair that is not escaped, becomes U+FFFD: most texts of an event are not read.
      let isText = String(validating: bytes, as: UTF8.self) != nil
      return try JSONParser.parse(isText ? bytes : Array(String(decoding: bytes, as: UTF8.self).utf8))
    } catch {
      // The columns of a skeleton are not those of the text.
      let text = error.description
      let cause = text.firstRange(of: " at line ").map { text[..<$0.lowerBound] } ?? text[...]
      throw JSONError("\(cause) in the event at byte \(range.lowerBound)")
    }
  }
}

/// A text in a skeleton, with its place in the original text.
struct LocatedText {
  /// The place of its literal, quotes included.
  let range: Range<Int>
  /// The text; nil if it is long.
  let text: String?

  init?(_ value: JSONValue?) {
    guard let string = value?.string, let space = string.utf8.lastIndex(of: UInt8(ascii: " ")) else { return nil }
    let place = string[string.utf8.index(after: space)...].split(separator: "+").compactMap { Int($0) }
    guard place.count == 2, place[0] >= 0, place[1] >= 0, place[0] <= Int.max - place[1] else { return nil }
    range = place[0]..<place[0] + place[1]
    text = place[1] <= SkeletonWriter.textBytes ? String(string[..<space]) : nil
  }

  /// Whether the text is long enough for an image in base64.
  var mayBeImage: Bool { range.count >= 64 }
}

extension JSONValue {
  /// Returns a member of a skeleton's object that is a short text.
  func text(_ key: String) -> String? { LocatedText(object?[key])?.text }
}

/// Collects the bytes of a skeleton.
struct SkeletonWriter {
  /// Longer literals are left out, quotes included.
  static let textBytes = 512

  let start: Int
  /// The number of containers around it.
  let depth: Int
  private let window: [UInt8]
  private let limit: Int
  private var bytes: [UInt8] = []
  private var isTooLarge = false
  private var literalStart = 0
  private var literalBytes = 0
  private var isKey = false
  private var keyRange = 0..<0

  /// - Parameters:
  ///   - window: the literal of the name before it; empty if there is none.
  ///   - limit: in bytes.
  init(start: Int, depth: Int, window: [UInt8], limit: Int) {
    (self.start, self.depth, self.window, self.limit) = (start, depth, window, limit)
  }

  /// The last key, as written.
  var key: ArraySlice<UInt8> { isTooLarge ? [] : bytes[keyRange] }

  mutating func append(_ byte: UInt8) {
    // Spaces separate numbers and words.
    if byte == UInt8(ascii: " "), bytes.last == byte { return }
    guard !isTooLarge else { return }
    bytes.append(byte)
    checkSize()
  }

  mutating func append(_ text: StaticString) {
    text.withUTF8Buffer { for index in 0..<$0.count { append(unsafe $0[index]) } }
  }

  private mutating func checkSize() {
    if bytes.count > limit { giveUp() }
  }

  private mutating func giveUp() {
    isTooLarge = true
    (bytes, keyRange) = ([], 0..<0)
  }

  mutating func beginLiteral(isKey: Bool) {
    literalStart = bytes.count
    literalBytes = 2
    self.isKey = isKey
    append(UInt8(ascii: "\""))
  }

  mutating func appendLiteral(_ part: UnsafeBufferPointer<UInt8>) {
    literalBytes += part.count
    guard !isTooLarge, isKey || literalBytes <= Self.textBytes else { return }
    if bytes.count + part.count <= limit { unsafe bytes += part } else { giveUp() }
  }

  /// - Parameter range: of the literal in the text.
  mutating func endLiteral(_ range: Range<Int>, isKey: Bool) {
    guard !isTooLarge else { return }
    if isKey {
      append(UInt8(ascii: "\""))
      keyRange = isTooLarge ? 0..<0 : literalStart..<bytes.count
      return
    }
    if range.count > Self.textBytes { bytes.removeLast(bytes.count - literalStart - 1) }
    bytes += " \(range.lowerBound)+\(range.count)\"".utf8
    checkSize()
  }

  func finished(end: Int) -> Skeleton {
    Skeleton(
      range: start..<end, window: window.isEmpty ? nil : (try? JSONParser.parse(window))?.string,
      bytes: isTooLarge ? nil : bytes)
  }
}
