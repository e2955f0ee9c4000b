import FileSystem

/// A header of all objects that are written: `--store-header`. Stores know headers for encryption, storage classes and tags.
package struct StoreHeader: Sendable, Equatable {
  /// In lower case.
  package let name: String
  package let value: String

  private static let prefix = "x-amz-"
  private static let maximumNameBytes = 128
  private static let maximumValueBytes = 2_048

  /// Headers that this client sets or signs, and those with which a write does something else, by the beginnings of their names.
  private static let refused: [(beginning: String, cause: String)] = [
    ("x-amz-content-sha256", "is set with each request"), ("x-amz-date", "is set with each request"),
    ("x-amz-security-token", "is set with each request"), ("x-amz-decoded-content-length", "is set with each request"),
    ("x-amz-checksum-", "is the sum of one object"), ("x-amz-sdk-checksum", "is the sum of one object"),
    ("x-amz-trailer", "is the sum of one object"), (ContentSum.header, "is the sum of one object"),
    ("x-amz-copy-", "is set with each copy"), ("x-amz-metadata-directive", "is set with each copy"),
    ("x-amz-tagging-directive", "is set with each copy"), ("x-amz-write-offset", "would not write a whole object"),
    ("x-amz-server-side-encryption-customer-", "names a key that readers would have to send, too"),
  ]
  /// Classes whose objects cannot be read at once.
  private static let archives: Set = ["GLACIER", "DEEP_ARCHIVE"]

  /// Reads `NAME: VALUE`. The blank may be missing.
  ///
  /// - Throws: ``Failure``.
  @Sendable package init(_ text: String) throws {
    func wrong(_ cause: String) -> Failure {
      Failure(.usage, "\(cause); a header is given as 'x-amz-storage-class: STANDARD_IA'")
    }
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { throw wrong("it has no colon") }
    let written = text[..<colon]
    let name = written.lowercased()
    guard written.isPlain(and: "-"), name.hasPrefix(Self.prefix), name.utf8.count > Self.prefix.utf8.count,
      name.utf8.count <= Self.maximumNameBytes
    else { throw wrong("'\(String(written.prefix(80)).oneLine)' is no header that begins with x-amz-") }
    if let refused = Self.refused.first(where: { name.hasPrefix($0.beginning) }) {
      throw wrong("\(name) \(refused.cause)")
    }
    let words = text[text.index(after: colon)...].utf8
    guard words.count <= Self.maximumValueBytes, words.allSatisfy({ (32...126).contains($0) }) else {
      throw wrong("the value of \(name) has other characters than those of ASCII, or more than 2048")
    }
    // Signatures are made of single blanks.
    let value = text[text.index(after: colon)...].split(separator: " ").joined(separator: " ")
    if value.isEmpty {
      throw wrong("\(name) has no value (in a variable, write NAME:VALUE without a blank)")
    }
    if name == "x-amz-storage-class", Self.archives.contains(value.uppercased()) {
      throw wrong("objects of the class \(value) cannot be read at once")
    }
    (self.name, self.value) = (name, value)
  }
}

extension [StoreHeader] {
  /// The headers of a written object. Of two with one name, the last one counts.
  var ofWrites: [(name: String, value: String)] {
    Dictionary(map { ($0.name, $0.value) }) { $1 }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// The headers of an object that is copied: it gets these tags, not those of its source.
  var ofCopies: [(name: String, value: String)] {
    ofWrites + (contains { $0.name == "x-amz-tagging" } ? [("x-amz-tagging-directive", "REPLACE")] : [])
  }
}
