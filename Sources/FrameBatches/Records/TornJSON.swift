import JSON

/// A JSON text that may break off, or is damaged: members of its outermost objects can be read up to there.
struct TornJSON {
  private let bytes: [UInt8]

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Returns the text of the first member of this name in an outermost object; nil if there is none before the damage.
  func member(_ name: String) -> String? {
    var (position, depth) = (0, 0)
    // The key before a colon.
    var key: String?
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ","): key = nil
      case UInt8(ascii: "\""):
        guard let end = end(ofStringAt: position) else { return nil }
        if depth == 1 {
          let text = try? JSONParser.parse(Array(bytes[position..<end])).string
          if key == name { return text }
          key = text
        }
        position = end - 1
      default: break
      }
      position += 1
    }
    return nil
  }

  /// Returns where a string ends, behind its closing quote; nil if it breaks off.
  private func end(ofStringAt start: Int) -> Int? {
    var position = start + 1
    while position < bytes.count {
      if bytes[position] == UInt8(ascii: "\"") { return position + 1 }
      position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
    }
    return nil
  }
}
