import FileSystem
import WorkQueues

/// `s3://bucket[/prefix]`: a bucket and a prefix of its keys.
package struct S3Location: Equatable, Sendable, CustomStringConvertible {
  let bucket: String
  /// Empty, or ending with a slash.
  let prefix: String

  @Sendable package init(_ text: String) throws {
    func wrong(_ why: String) -> Failure {
      Failure(.usage, "\(why); a store is named as s3://BUCKET or s3://BUCKET/PREFIX")
    }
    guard text.hasPrefix("s3://") else { throw wrong("it does not begin with s3://") }
    let path = text.dropFirst("s3://".count)
    let bucket = path.prefix { $0 != "/" }
    let isPlain = bucket.isPlain(and: ".-") && bucket == bucket.lowercased()
    guard isPlain, (3...63).contains(bucket.utf8.count), !".-".contains(bucket.first ?? "."),
      !".-".contains(bucket.last ?? "."), !bucket.contains("..")
    else { throw wrong("'\(bucket)' is no bucket: 3 to 63 of a-z 0-9 . -, with a letter or digit at both ends") }
    var parts = path.dropFirst(bucket.count + 1).split(separator: "/", omittingEmptySubsequences: false)
    if parts.last == "" { parts.removeLast() }
    guard parts.allSatisfy({ !["", ".", ".."].contains($0) }) else {
      throw wrong("a part of the prefix is empty, . or ..")
    }
    let prefix = parts.map { $0 + "/" }.joined()
    guard prefix.utf8.count <= 512, prefix.unicodeScalars.allSatisfy({ $0.value >= 32 && $0.value != 127 }) else {
      throw wrong("the prefix has control characters, or more than 512 bytes")
    }
    self.bucket = String(bucket)
    self.prefix = prefix
  }

  /// Where the keys of notifications point to.
  package var place: ObjectPlace { ObjectPlace(bucket: bucket, prefix: prefix) }

  package var description: String { "s3://\(bucket)/\(prefix)" }

  /// The name of an object in messages.
  package func name(of key: String) -> String { description + key }
}
