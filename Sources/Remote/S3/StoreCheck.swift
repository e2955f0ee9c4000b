// Tries what queues and stores rely on, with small objects under a prefix of a random name.

import FileSystem
import Sessions

/// A check of an object store: `config check`.
package struct StoreCheck: Sendable {
  /// A promise of a store.
  package enum Check: String, CaseIterable, Sendable {
    case write, read
    case readPart = "read a part"
    case head, missing, tags, list
    case listFromAnyKey = "list from any key"
    case listedAges = "list ages"
    case ifNoneMatch = "if-none-match"
    case racedIfNoneMatch = "if-none-match, raced"
    case ifMatch = "if-match"
    case racedIfMatch = "if-match, raced"
    case copy
    case conditionalDelete = "delete if-match"
    case age, delete

    /// Whether workers, or readers of sessions, cannot do without it.
    package var isRequired: Bool { ![.readPart, .conditionalDelete, .listedAges].contains(self) }

    package var meaning: String {
      switch self {
      case .write: "an object is written"
      case .read: "an object is read back, byte for byte"
      case .readPart: "Range gives a part of an object, and no more; without it, there are no packs (--layout packed)"
      case .head: "HEAD tells the size of an object"
      case .missing: "an object that is missing is told from one that may not be read"
      case .tags: "other bytes have another ETag, and PUT, GET, HEAD and lists say the same one"
      case .list: "keys are listed in the order of their bytes, at once, and from a key on"
      case .listFromAnyKey: "a list begins behind a key that is no object: readers leave out folders"
      case .listedAges: "lists tell Last-Modified; without it, status knows no ages"
      case .ifNoneMatch: "If-None-Match: * creates no object twice"
      case .racedIfNoneMatch: "of writers at the same time, one creates an object"
      case .ifMatch: "If-Match replaces the named version only"
      case .racedIfMatch: "of writers at the same time, one replaces a version"
      case .copy: "an object is copied within the store"
      case .conditionalDelete: "If-Match removes the named version only; without it, a late removal may win"
      case .age: "HEAD tells Last-Modified and Date"
      case .delete: "a removed object is gone at once"
      }
    }
  }

  package struct Finding: Sendable {
    package let check: Check
    /// Nil if the store keeps the promise.
    package let fault: String?
  }

  private let objects: any ObjectClient
  /// A name that begins with a dot is no batch.
  private let prefix: String
  private let written = Monitor<Set<String>>([])

  /// Writers of a race, and races: stores that only seem to be atomic fail some of them.
  private static let writers: UInt8 = 8
  private static let races = 4
  /// Removals that may fail before the rest is left: each may take the time of all its tries.
  private static let maximumFailures = 3
  /// Keys that need the order of bytes, and every kind of encoding.
  private static let names = ["a", "a b+c", "a/b", "a~", "z", "ü"]

  package init(_ objects: any ObjectClient) {
    self.objects = objects
    prefix = ".check-\(String(UInt64.random(in: .min ... .max), radix: 36))/"
  }

  /// Runs all checks, and removes the objects. Objects that cannot be removed are a fault of ``Check/delete``.
  ///
  /// - Throws: ``ObjectStoreError`` if nothing can be written: then nothing is known.
  package func run() throws -> [Finding] {
    guard try put("first", [1]) != nil else {
      throw ObjectStoreError.invalidResponse("PUT", prefix, "a refusal without a condition")
    }
    var findings = Check.allCases.map { check in
      do {
        return Finding(check: check, fault: try fault(of: check))
      } catch {
        return Finding(check: check, fault: "\(error)")
      }
    }
    if let leftover = removeAll() {
      findings = findings.map { finding in
        guard finding.check == .delete else { return finding }
        return Finding(check: .delete, fault: finding.fault.map { "\($0); \(leftover)" } ?? leftover)
      }
    }
    return findings
  }

  private func fault(of check: Check) throws -> String? {
    switch check {
    case .write: try put("write", [1, 2, 3]) == nil ? "the write was refused" : nil
    case .read: try faultOfRead()
    case .readPart: try faultOfReadPart()
    case .head: try faultOfHead()
    case .missing: try faultOfMissing()
    case .tags: try faultOfTags()
    case .list: try faultOfList()
    case .listFromAnyKey: try faultOfSkip()
    case .listedAges:
      try objects.list(prefix + "first", after: nil).first?.ageS == nil ? "a list tells no time" : nil
    case .ifNoneMatch: try faultOfCreation()
    case .racedIfNoneMatch: try faultOfRaces(replacing: false)
    case .ifMatch: try faultOfReplacement()
    case .racedIfMatch: try faultOfRaces(replacing: true)
    case .copy: try faultOfCopy()
    case .conditionalDelete: try faultOfConditionalDelete()
    case .age: try objects.head(prefix + "first")?.ageS == nil ? "one of both is missing" : nil
    case .delete: try faultOfDelete()
    }
  }

  private func put(_ name: String, _ bytes: [UInt8], when condition: PutCondition = .always) throws -> ObjectTag? {
    // Before the request: its answer may be lost.
    written.change { _ = $0.insert(name) }
    return try objects.put(prefix + name, .bytes(bytes), .archive, when: condition)
  }

  /// Like ``put(_:_:when:)``, but a write whose answer was lost is no refusal. Only this check writes below its prefix.
  private func putOwn(_ name: String, _ bytes: [UInt8], when condition: PutCondition) throws -> ObjectTag? {
    written.change { _ = $0.insert(name) }
    return try objects.putOwn(prefix + name, bytes, .archive, when: condition)
  }

  private func bytes(_ name: String) throws -> [UInt8]? { try objects.get(prefix + name, limit: 1 << 20)?.bytes }

  private func faultOfRead() throws -> String? {
    let sent = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    _ = try put("read", sent)
    return try bytes("read") == sent ? nil : "other bytes came back"
  }

  private func faultOfReadPart() throws -> String? {
    let sent = (0..<100).map { UInt8($0) }
    _ = try put("part", sent)
    guard try objects.get(prefix + "part", in: 10..<30)?.bytes == Array(sent[10..<30]) else { return "other bytes" }
    return try objects.get(prefix + "part", in: 90..<110) == nil ? nil : "bytes behind the end"
  }

  private func faultOfHead() throws -> String? {
    _ = try put("head", [1, 2, 3])
    guard let size = try objects.head(prefix + "head")?.size else { return "no such object" }
    return size == 3 ? nil : "it tells \(size) bytes for 3"
  }

  private func faultOfMissing() throws -> String? {
    let isThere = try bytes("never") != nil || objects.head(prefix + "never") != nil
    return isThere ? "an object that was never written is there" : nil
  }

  private func faultOfTags() throws -> String? {
    guard let first = try put("tags", [1]), let second = try put("tags", [2]) else { return "a write was refused" }
    if first == second { return "other bytes have the same ETag" }
    let others = try [
      objects.get(prefix + "tags", limit: 10)?.tag, objects.head(prefix + "tags")?.tag,
      objects.list(prefix + "tags", after: nil).first?.tag,
    ]
    return others.allSatisfy { $0 == second } ? nil : "PUT, GET, HEAD and the list say different ETags"
  }

  private func faultOfList() throws -> String? {
    for name in Self.names { _ = try put("list/\(name)", [1]) }
    let sorted = Self.names.map { "\(prefix)list/\($0)" }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    guard try keys(prefix + "list/", after: nil) == sorted else {
      return "not the keys that were written, or their order"
    }
    return try keys(prefix + "list/", after: sorted[2]) == Array(sorted[3...]) ? nil : "start-after is ignored"
  }

  /// The keys behind `a0` are those behind the folder `a/`.
  private func faultOfSkip() throws -> String? {
    for name in ["a/b", "a/c", "b"] { _ = try put("skip/\(name)", [1]) }
    let found = try keys(prefix + "skip/", after: prefix + "skip/a0")
    return found == ["\(prefix)skip/b"] ? nil : "not the keys behind it"
  }

  /// Returns the keys of all pages. Each page has one that was not there before.
  private func keys(_ prefix: String, after key: String?) throws -> [String] {
    var keys: [String] = []
    var last = key
    while keys.count <= 10_000 {
      let page = try objects.list(prefix, after: last).map(\.key)
      guard let end = page.last, end != last else { return keys }
      keys += page
      last = end
    }
    return keys
  }

  private func faultOfCreation() throws -> String? {
    guard try putOwn("absent", [1], when: .absent) != nil else { return "a new object was refused" }
    guard try put("absent", [2], when: .absent) == nil else { return "an existing object was replaced" }
    return try bytes("absent") == [1] ? nil : "the refused write has replaced the object"
  }

  private func faultOfReplacement() throws -> String? {
    guard let tag = try put("match", [1]) else { return "a write was refused" }
    guard let next = try putOwn("match", [2], when: .matching(tag)) else { return "the named version was refused" }
    guard try put("match", [3], when: .matching(tag)) == nil else { return "another version was replaced" }
    guard try put("missing", [3], when: .matching(next)) == nil else { return "a missing object was created" }
    return try bytes("match") == [2] ? nil : "the refused write has replaced the object"
  }

  /// Lets writers meet: one of them may win, and its bytes stay.
  private func faultOfRaces(replacing: Bool) throws -> String? {
    for race in 0..<Self.races {
      let name = "race-\(replacing)-\(race)"
      let tag = replacing ? try put(name, [255]) : nil
      let outcome = Monitor<(won: [UInt8], failure: (any Error)?)>(([], nil))
      let threads = ThreadGroup()
      defer { threads.join() }
      for number in 0..<Self.writers {
        try threads.start { [self] in
          do {
            guard try put(name, [number], when: .unchanged(since: tag)) != nil else { return }
            outcome.change { $0.won.append(number) }
          } catch {
            outcome.change { $0.failure = error }
          }
        }
      }
      threads.join()
      let (won, failure) = outcome.read { $0 }
      if let failure { throw failure }
      // A winner whose answer was lost is refused at its second try.
      guard won.count <= 1 else { return "\(won.count) of \(Self.writers) writers won" }
      let stored = try bytes(name)
      guard won.isEmpty ? stored != [255] && stored?.count == 1 : stored == won else {
        return "the object is not the winner's"
      }
    }
    return nil
  }

  private func faultOfCopy() throws -> String? {
    guard let tag = try put("source", [1, 2]) else { return "a write was refused" }
    written.change { _ = $0.insert("copy of it") }
    guard try objects.copy(prefix + "source", tag, to: prefix + "copy of it") else { return "the copy was refused" }
    return try bytes("copy of it") == [1, 2] ? nil : "the copy has other bytes"
  }

  private func faultOfConditionalDelete() throws -> String? {
    guard let old = try put("kept", [1]), try put("kept", [2]) != nil else { return "a write was refused" }
    try objects.delete(prefix + "kept", old)
    return try bytes("kept") == [2] ? nil : "the condition is ignored"
  }

  private func faultOfDelete() throws -> String? {
    _ = try put("gone", [1])
    try objects.delete(prefix + "gone", nil)
    guard try bytes("gone") == nil, try objects.head(prefix + "gone") == nil else { return "it is still there" }
    try objects.delete(prefix + "gone", nil)
    return try objects.list(prefix + "gone", after: nil).isEmpty ? nil : "it is still listed"
  }

  /// - Returns: why objects are left; nil if there are none.
  private func removeAll() -> String? {
    var failures: [any Error] = []
    for name in written.read({ $0 }) where failures.count < Self.maximumFailures {
      do {
        try objects.delete(prefix + name, nil)
      } catch {
        failures.append(error)
      }
    }
    return failures.first.map { "objects are left below \(prefix): \($0)" }
  }
}
