import FileSystem

/// The stable stand-ins for the names of a user in one report: the shape of a name, and its number.
struct Pseudonyms {
  /// Maximum length of a shape, in characters.
  static let maximumLength = 80
  /// Maximum number of known names with blanks that a sentence is searched for.
  private static let maximumPhrases = 1_000
  /// The largest count that a sentence keeps as it is. Longer numbers may be names; unix milliseconds are kept, too.
  private static let maximumDigits = 7
  private static let unixMs = Int64(1_000_000_000_000)..<2_500_000_000_000

  private var numbers: [String: Int] = [:]
  /// Known names that are several words.
  private var phrases: [String] = []
  /// Whether a name is the program's own, such as that of a segment's file.
  private let isOwn: (String) -> Bool

  init(isOwn: @escaping (String) -> Bool = { _ in false }) { self.isOwn = isOwn }

  /// Returns the stand-in for a name: equal names have equal ones.
  mutating func name(_ text: String) -> String {
    if isOwn(text) { return text }
    let number: Int
    if let known = numbers[text] {
      number = known
    } else {
      number = numbers.count + 1
      numbers[text] = number
      if text.contains(where: \.isWhitespace), phrases.count < Self.maximumPhrases { phrases.append(text) }
    }
    return "\(Self.shape(of: text))#\(number)"
  }

  /// Letters become `a`, `A` and `ä`, digits become `0`, ASCII marks stay, and all else becomes `?`.
  static func shape(of text: String) -> String {
    var shape = ""
    for (index, scalar) in text.unicodeScalars.enumerated() {
      if index == maximumLength { return shape + "…" }
      switch scalar {
      case "a"..."z": shape += "a"
      case "A"..."Z": shape += "A"
      case "0"..."9": shape += "0"
      case " "..."~": shape.unicodeScalars.append(scalar)
      default: shape += scalar.properties.isAlphabetic ? "ä" : "?"
      }
    }
    return shape
  }

  /// Returns a message with stand-ins for all but the program's own words, its own names, and numbers. All that is quoted is a name.
  mutating func sentence(_ text: String) -> String {
    // A message may be as long as a hostile file makes it.
    var text = text.shortened(to: 2_000)
    for (index, phrase) in phrases.enumerated() where text.contains(phrase) {
      text = text.replacing(phrase, with: " \(Self.phraseMark)\(index) ")
    }
    var words: [String] = []
    var quoted: (end: Character, text: String)?
    for word in text.split(whereSeparator: \.isWhitespace) {
      if let open = quoted {
        quoted?.text += " " + word
        guard let end = word.lastIndex(of: open.end) else { continue }
        let whole = quoted?.text ?? ""
        let rest = word[word.index(after: end)...]
        words.append("‘" + name(String(whole.dropLast(rest.count + 1))) + "’" + Self.shape(of: String(rest)))
        quoted = nil
      } else if let first = word.first, let end = Self.quotes[first] {
        let inner = word.dropFirst()
        if let close = inner.lastIndex(of: end) {
          words.append(
            "‘" + name(String(inner[..<close])) + "’" + Self.shape(of: String(inner[inner.index(after: close)...])))
        } else {
          quoted = (end, String(inner))
        }
      } else {
        words.append(self.word(String(word)))
      }
    }
    if let quoted { words.append("‘" + name(quoted.text)) }
    return words.joined(separator: " ")
  }

  private static let quotes: [Character: Character] = [
    "'": "'", "\"": "\"", "“": "”", "‘": "’", "„": "“", "«": "»", "`": "`",
  ]

  /// The beginning of a word that stands for a phrase while its sentence is split: of private use, so that no message has it.
  private static let phraseMark: Character = "\u{F8FF}"

  private mutating func word(_ word: String) -> String {
    if word.first == Self.phraseMark, let index = Int(word.dropFirst()), phrases.indices.contains(index) {
      return name(phrases[index])
    }
    let edges: (Character) -> Bool = { ".,;:()[]{}!?…".contains($0) }
    let start = word.firstIndex { !edges($0) } ?? word.endIndex
    let end = word.lastIndex { !edges($0) }.map { word.index(after: $0) } ?? word.endIndex
    guard start < end else { return Self.shape(of: word) }
    let core = String(word[start..<end])
    let kept = numbers[core] == nil && Self.isKept(core) ? core : name(core)
    return Self.shape(of: String(word[..<start])) + kept
      + (word[end...].contains("…") ? "…" : Self.shape(of: String(word[end...])))
  }

  /// Whether a word is one of a message's own: words joined by hyphens, a number, a size, or a sign.
  private static func isKept(_ word: String) -> Bool {
    if ["-", "−", "–", "=", "+", "/", "×", "%", "<", ">", "…"].contains(word) { return true }
    let parts = word.split(omittingEmptySubsequences: false) { "-–×%".contains($0) }
    if parts.contains(where: { $0.contains { "0"..."9" ~= $0 } }) {
      return parts.allSatisfy { $0.isEmpty || isNumber($0) }
    }
    // Options of the program begin with hyphens.
    return parts.filter { !$0.isEmpty }.allSatisfy { part in
      let ending = ["'s", "’s", "'", "’"].first { part.hasSuffix($0) } ?? ""
      return ReportWords.all.contains(part.dropLast(ending.count).lowercased())
    }
  }

  /// Whether it is a whole number, or one with a fraction.
  private static func isNumber(_ text: Substring) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count <= 2, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (48...57).contains($0) } }) else {
      return false
    }
    if parts.allSatisfy({ $0.utf8.count <= maximumDigits }) { return true }
    return parts.count == 1 && Int64(text).map(unixMs.contains) == true
  }
}
