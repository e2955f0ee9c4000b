import Glibc

/// The names of a segment's files, made from its start.
package enum SegmentName {
  package static func video(_ startMs: Int64) -> String { stem(startMs) + ".mp4" }
  package static func fragment(_ startMs: Int64, digest: String) -> String { "\(stem(startMs))-\(digest).m4s" }
  package static func sprite(_ startMs: Int64, digest: String) -> String { "\(stem(startMs))-\(digest).jpg" }
  package static func manifest(_ startMs: Int64) -> String { stem(startMs) + ".json" }
  /// Returns the name of a pack that begins with this segment, in an object store.
  ///
  /// - Parameter revision: 0 for the pack of a batch; others are packs that replace earlier objects.
  package static func pack(_ startMs: Int64, revision: Int = 0) -> String {
    "pack-" + digits(startMs) + (revision == 0 ? "" : "-\(revision)") + ".mp4"
  }
  /// Returns the name of an event for Sentry.
  package static func event(_ startMs: Int64) -> String { stem(startMs) + ".sentry.json" }
  /// Returns the name of the words in its pictures.
  package static func text(_ startMs: Int64) -> String { stem(startMs) + ".text.json" }
  /// Returns the name of the labels that came after its pictures.
  package static func labels(_ startMs: Int64) -> String { stem(startMs) + ".labels.json" }

  // Each returns the start in a file's name, in unix milliseconds; nil for any other file.
  package static func start(ofManifest name: String) -> Int64? { start(of: name, ".json") }
  package static func start(ofVideo name: String) -> Int64? { start(of: name, ".mp4") }
  package static func start(ofEvent name: String) -> Int64? { start(of: name, ".sentry.json") }
  package static func start(ofText name: String) -> Int64? { start(of: name, ".text.json") }
  package static func start(ofLabels name: String) -> Int64? { start(of: name, ".labels.json") }
  /// Only for the pack of a batch.
  package static func start(ofPack name: String) -> Int64? {
    pack(named: name).flatMap { $0.revision == 0 ? $0.startMs : nil }
  }

  /// Returns the start and the revision in the name of a pack; nil for any other name.
  package static func pack(named name: String) -> (startMs: Int64, revision: Int)? {
    guard name.utf8.count >= 22, name.hasPrefix("pack-"), name.hasSuffix(".mp4") else { return nil }
    let parts = name.dropFirst(5).dropLast(4).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count <= 2, let start = Int64(parts[0]),
      let revision = parts.count == 2 ? Int(parts[1]) : 0, revision >= 0, pack(start, revision: revision) == name
    else { return nil }
    return (start, revision)
  }

  /// Like ``start(ofManifest:)``, for the bytes of a name: the directory of a day has tens of thousands.
  package static func start(ofManifest name: UnsafeRawBufferPointer) -> Int64? { unsafe start(of: name, ".json") }

  package static func start(ofVideo name: UnsafeRawBufferPointer) -> Int64? { unsafe start(of: name, ".mp4") }

  package static func start(ofLabels name: UnsafeRawBufferPointer) -> Int64? { unsafe start(of: name, ".labels.json") }

  private static func start(of name: String, _ suffix: StaticString) -> Int64? {
    var name = name
    return name.withUTF8 { unsafe start(of: UnsafeRawBufferPointer($0), suffix) }
  }

  private static func start(of name: UnsafeRawBufferPointer, _ suffix: StaticString) -> Int64? {
    let (prefix, digits): (StaticString, Int) = ("segment-", 13)
    guard name.count == prefix.utf8CodeUnitCount + digits + suffix.utf8CodeUnitCount, let start = name.baseAddress,
      unsafe memcmp(start, prefix.utf8Start, prefix.utf8CodeUnitCount) == 0
    else { return nil }
    let end = unsafe start + prefix.utf8CodeUnitCount + digits
    guard unsafe memcmp(end, suffix.utf8Start, suffix.utf8CodeUnitCount) == 0 else { return nil }
    var value: Int64 = 0
    for index in prefix.utf8CodeUnitCount..<prefix.utf8CodeUnitCount + digits {
      guard unsafe (48...57).contains(name[index]) else { return nil }
      value = unsafe 10 * value + Int64(name[index] - 48)
    }
    return value
  }

  private static func stem(_ startMs: Int64) -> String { "segment-" + digits(startMs) }

  private static func digits(_ startMs: Int64) -> String {
    let digits = String(startMs)
    return String(repeating: "0", count: max(0, 13 - digits.count)) + digits
  }
}
