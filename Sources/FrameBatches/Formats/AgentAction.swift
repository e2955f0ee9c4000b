// The action of an agent as the text of a step: its verb and its place. The texts that it types and the keys that it presses may be secret.

import FileSystem
import JSON

enum AgentAction {
  private static let verbBytes = 200
  /// Calls of one action that are named.
  private static let mostCalls = 5
  /// The calls of pyautogui whose first two arguments are a place.
  private static let placed: Set = [
    "click", "doubleClick", "dragTo", "leftClick", "middleClick", "mouseDown", "mouseUp", "moveTo", "rightClick",
    "tripleClick",
  ]

  /// Returns the verb, and the place if the arguments have one.
  static func text(_ verb: String, at arguments: [String: JSONValue]) -> String {
    let list = arguments["coordinate"]?.array
    let x = arguments["x"] ?? arguments["coordinate_x"] ?? list?.first
    let y = arguments["y"] ?? arguments["coordinate_y"] ?? list?.dropFirst().first
    return verb.cut(to: verbBytes) + place(x?.double, y?.double)
  }

  private static func place(_ x: Double?, _ y: Double?) -> String {
    let most = 1e6
    guard let x, let y, x.magnitude < most, y.magnitude < most else { return "" }
    return " at \(Int64(x.rounded())), \(Int64(y.rounded()))"
  }

  /// Returns the calls in Python's code; those of pyautogui only, if it has some. A single word is its own verb.
  static func text(ofCode code: String) -> String {
    let code = withoutTexts(code)
    let word = code.split(whereSeparator: \.isWhitespace)
    if word.count == 1, word[0].allSatisfy({ isOfName($0) || $0 == "-" || $0 == "." }) {
      return String(word[0]).cut(to: verbBytes)
    }
    let all = calls(in: code)
    let prefix = "pyautogui."
    let own = all.filter { $0.name.hasPrefix(prefix) }
    let named = own.isEmpty ? all.filter { $0.name != "time.sleep" } : own
    guard !named.isEmpty else { return "code" }
    let texts = named.prefix(mostCalls).map { call in
      let verb = call.name.dropFirst(own.isEmpty ? 0 : prefix.count)
      let numbers = call.arguments.prefix(2).map { argument in
        Double(argument.drop { isOfName($0) && !$0.isNumber || $0 == "=" || $0 == " " }.filter { $0 != " " })
      }
      let isPlaced = placed.contains(String(verb)) && numbers.count == 2
      return String(verb).cut(to: verbBytes) + (isPlaced ? place(numbers[0], numbers[1]) : "")
    }
    return texts.joined(separator: "; ") + (named.count > mostCalls ? "; …" : "")
  }

  private static func isOfName(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || character == "_")
  }

  /// Returns the names before brackets, and what is between these up to the first closing one.
  private static func calls(in code: String) -> [(name: Substring, arguments: [Substring])] {
    let parts = code.split(separator: "(", omittingEmptySubsequences: false)
    return zip(parts, parts.dropFirst()).compactMap { before, after in
      let start = before.lastIndex { !isOfName($0) && $0 != "." }.map(before.index(after:)) ?? before.startIndex
      guard start < before.endIndex, before[start].isLetter else { return nil }
      return (before[start...], after.prefix { $0 != ")" }.split(separator: ","))
    }
  }

  /// Removes the comments and the literals of texts. One without an end goes on to the end of the code.
  private static func withoutTexts(_ code: String) -> String {
    var left: [UInt8] = []
    var bytes = Array(code.utf8)[...]
    while let byte = bytes.first {
      switch byte {
      case UInt8(ascii: "#"): bytes = bytes.drop { $0 != UInt8(ascii: "\n") }
      case UInt8(ascii: "'"), UInt8(ascii: "\""):
        let isLong = bytes.prefix(3).count == 3 && bytes.prefix(3).allSatisfy { $0 == byte }
        let end = Array(repeating: byte, count: isLong ? 3 : 1)
        bytes = bytes.dropFirst(end.count)
        while !bytes.isEmpty, !bytes.starts(with: end) {
          bytes = bytes.dropFirst(bytes.first == UInt8(ascii: "\\") ? 2 : 1)
        }
        bytes = bytes.dropFirst(end.count)
        // A text is no number.
        left.append(UInt8(ascii: "?"))
      default:
        left.append(byte)
        bytes = bytes.dropFirst()
      }
    }
    return String(decoding: left, as: UTF8.self)
  }
}
