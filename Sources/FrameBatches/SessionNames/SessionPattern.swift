// The pattern of batch names that have the session in them: `--session-from '{session}-{part}'`.

import FileSystem

/// A pattern of batch names without an archive's ending. One with a `/` describes the folders before the name, too.
package struct SessionPattern: Sendable, Equatable, CustomStringConvertible {
  package let description: String
  private let fields: [NamePattern.Field]
  /// The number of folders that it describes.
  package let folders: Int

  /// Maximum number of `{part}` and `*`: each of them can end at many places of a name.
  private static let wildcards = 8
  private static let fieldNames: [(name: String, field: NamePattern.Field)] = [
    ("{session}", .group), ("{part}", .digits(.sequence, 1...255)), ("*", .anything),
  ]
  private static let example = "such as '{session}-{part}'"

  /// - Throws: ``Fault`` for a text that is no pattern.
  package init(_ text: String) throws(Fault) {
    var fields: [NamePattern.Field] = []
    var rest = text[...]
    while let first = rest.first {
      if let (name, field) = Self.fieldNames.first(where: { rest.hasPrefix($0.name) }) {
        fields.append(field)
        rest = rest.dropFirst(name.count)
      } else if first == "{" || first == "}" {
        throw Fault(
          "'\(Self.word(rest))' is no field; use {session}, {part} (a number) and * (any text), \(Self.example)")
      } else {
        fields += String(first).utf8.map(NamePattern.Field.literal)
        rest = rest.dropFirst()
      }
    }
    let sessions = fields.count { $0 == .group }
    guard sessions == 1 else {
      throw Fault(
        "'\(text.shortened(to: 80))' has \(sessions == 0 ? "no {session}" : "{session} twice"); "
          + "write {session} once, where names have the session, \(Self.example)")
    }
    guard fields.count <= 255, fields.count(where: \.isWildcard) <= Self.wildcards else {
      throw Fault("is too long; use 255 characters and \(Self.wildcards) of {part} and * at most, \(Self.example)")
    }
    if zip(fields, fields.dropFirst()).contains(where: Self.isAmbiguous) {
      throw Fault(
        "two fields beside each other could divide a name in several ways; put text between them, \(Self.example)")
    }
    let components = fields.split(separator: .literal(UInt8(ascii: "/")), omittingEmptySubsequences: false)
    guard components.allSatisfy({ !$0.isEmpty }) else {
      throw Fault("'\(text.shortened(to: 80))' has a folder without a name; write it such as '{session}/*'")
    }
    (description, self.fields, folders) = (text, fields, components.count - 1)
  }

  /// The beginning of a text, up to the end of a field in braces.
  private static func word(_ text: Substring) -> String {
    let end = text.dropFirst().firstIndex { "{}".contains($0) }
    return String(end.map { text[$0] == "}" ? text[...$0] : text[..<$0] } ?? text).shortened(to: 40)
  }

  /// Whether fields beside each other can share characters in several ways. A number and other text cannot: a number is never split.
  private static func isAmbiguous(_ one: NamePattern.Field, _ other: NamePattern.Field) -> Bool {
    !one.isLiteral && !other.isLiteral && one.isNumber == other.isNumber
  }

  /// Returns the session in a name.
  ///
  /// - Parameter path: a name without an archive's ending, with at least as many folders before it as the pattern describes.
  /// - Returns: nil for a name of another pattern. The text may be no ``SessionID``.
  package func session(in path: some StringProtocol) -> String? {
    var search = NamePattern.end(of: Array(path.utf8), folders: folders).map { NamePatternSearch(fields, Array($0)) }
    return search?.found()?.group
  }

  /// Whether the pattern sees an `@` and what follows it. Others leave a name with an `@` alone: its session is before that.
  var describesAt: Bool { fields.contains(.literal(UInt8(ascii: "@"))) }

  /// The reason why a text is no pattern, and the remedy.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
  }
}

extension NamePattern.Field {
  fileprivate var isLiteral: Bool { if case .literal = self { true } else { false } }

  fileprivate var isWildcard: Bool { !isLiteral && self != .group }
}
