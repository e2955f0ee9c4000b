// Answers are checked when they are read: a disk, a store or a proxy may give other bytes than those that were written.

import FileSystem

/// The sum of an object's bytes, computed while they come, and the sum that its headers tell.
struct ContentSum {
  /// The header with the SHA-256 of the objects that this client writes. A copy within the store keeps it.
  static let header = "x-amz-meta-sha256"
  /// The header of an object that the store encrypts. With a key of a customer or of a key service, its tag is no MD5.
  static let encryption = "x-amz-server-side-encryption"
  static let customerEncryption = "x-amz-server-side-encryption-customer-algorithm"

  /// Whether the store is known to tag objects with their MD5. Other stores have other tags of the same form.
  let tagsAreMD5: Bool
  private var sums: Sums?

  private enum Sums {
    case sha256(SHA256, told: String)
    case md5(MD5, told: String)
    case untold

    init(_ headers: [String: String], tagsAreMD5: Bool) {
      if let told = headers[ContentSum.header].flatMap({ ContentSum.digits(of: $0, 64) }) {
        self = .sha256(SHA256(), told: told)
      } else if tagsAreMD5, let told = headers["etag"].flatMap(ContentSum.md5(ofTag:)),
        ["AES256", nil].contains(headers[ContentSum.encryption]), headers[ContentSum.customerEncryption] == nil
      {
        self = .md5(MD5(), told: told)
      } else {
        self = .untold
      }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
      switch self {
      case .sha256(var sum, let told):
        sum.update(bytes)
        self = .sha256(sum, told: told)
      case .md5(var sum, let told):
        sum.update(bytes)
        self = .md5(sum, told: told)
      case .untold: break
      }
    }
  }

  init(tagsAreMD5: Bool) { self.tagsAreMD5 = tagsAreMD5 }

  /// Takes the next bytes of a response with these headers.
  mutating func add(_ bytes: UnsafeRawBufferPointer, _ headers: [String: String]) {
    var sums = sums ?? Sums(headers, tagsAreMD5: tagsAreMD5)
    sums.update(bytes)
    self.sums = sums
  }

  /// Returns what is wrong with a whole response, in words; nil if nothing is.
  func fault(_ headers: [String: String]) -> String? {
    let (name, sum, told): (String, String, String)
    switch sums ?? Sums(headers, tagsAreMD5: tagsAreMD5) {
    case .sha256(var all, let written): (name, sum, told) = ("SHA-256", all.finish(), written)
    case .md5(var all, let written): (name, sum, told) = ("MD5", all.finish(), written)
    case .untold: return nil
    }
    return sum == told ? nil : "its bytes are not those that were written: their \(name) is \(sum), not \(told)"
  }

  /// Returns the MD5 that a tag has the form of.
  static func md5(ofTag tag: String) -> String? {
    let digits = tag.hasPrefix("\"") && tag.hasSuffix("\"") ? String(tag.dropFirst().dropLast()) : tag
    return Self.digits(of: digits, 32)
  }

  /// Returns a text of so many hexadecimal digits in lower case; nil if it is none.
  private static func digits(of text: String, _ count: Int) -> String? {
    let digits = text.lowercased()
    return digits.utf8.count == count && digits.isHexadecimal ? digits : nil
  }
}
