// The interface of an object store: objects under keys, each written whole or not at all, and on a condition if needed. Nothing
// here knows of HTTP, or of the contents of objects.

import FileSystem

/// An object store, for several threads at once.
///
/// Each function throws if the store cannot be reached or refuses the request (no such bucket, no permission). These are failures
/// of the environment, never of a batch. Clients retry transient failures a few times first.
package protocol ObjectClient: Sendable {
  /// Returns an object; nil if there is none.
  ///
  /// - Parameter limit: maximum size in bytes.
  /// - Throws: ``ObjectTooLarge``.
  func get(_ key: String, limit: Int) throws -> StoredObject?

  /// Returns a part of an object; nil if there is no object, or it is shorter. No sum of the whole object is compared.
  ///
  /// - Parameter range: not empty.
  func get(_ key: String, in range: Range<Int>) throws -> StoredObject?

  /// Writes an object's bytes to a new file.
  ///
  /// - Returns: nil, and no file, if there is no object.
  /// - Throws: ``ObjectTooLarge``; ``DiskError``.
  func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag?

  /// Returns the size, tag and age of an object; nil if there is none.
  func head(_ key: String) throws -> ObjectInfo?

  /// Writes an object.
  ///
  /// - Returns: nil if the condition does not hold. The cause may be this call: a retry after a lost reply, which
  ///   ``putOwn(_:_:_:when:)`` recognises.
  func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws -> ObjectTag?

  /// Copies an object within the store. An existing target is replaced.
  ///
  /// - Returns: whether there was an object with this tag, as far as the store supports that condition.
  func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool

  /// Removes an object.
  ///
  /// - Parameter tag: an object with another tag stays, if the store supports that condition; nil removes any.
  func delete(_ key: String, _ tag: ObjectTag?) throws

  /// Returns the first objects whose keys begin with `prefix` and come after `key`, in the order of their keys: as many as the
  /// store lists at once, none at the end.
  func list(_ prefix: String, after key: String?) throws -> [ObjectInfo]
}

/// The tag of an object's bytes: other content has another tag. It has no other meaning.
package struct ObjectTag: Sendable, Hashable, CustomStringConvertible {
  package let description: String
  package init(_ description: String) { self.description = description }
}

package struct StoredObject: Sendable, Equatable {
  package let bytes: [UInt8]
  package let tag: ObjectTag

  package init(bytes: [UInt8], tag: ObjectTag) {
    self.bytes = bytes
    self.tag = tag
  }
}

package struct ObjectInfo: Sendable, Equatable {
  package let key: String
  package let size: Int
  package let tag: ObjectTag
  /// Seconds since it was written, by the store's own clock; nil if the store does not tell it.
  package let ageS: Int?
  /// When it was written, by the store's own clock, in unix milliseconds; nil outside of a list, or if the store does not tell.
  package let modifiedMs: Int64?

  package init(key: String, size: Int, tag: ObjectTag, ageS: Int? = nil, modifiedMs: Int64? = nil) {
    self.key = key
    self.size = size
    self.tag = tag
    self.ageS = ageS
    self.modifiedMs = modifiedMs
  }
}

package enum ObjectBody: Sendable {
  case bytes([UInt8])
  /// The path of a file with the bytes.
  case file(String)
}

/// The kind of an object for clients: it decides its media type and cache lifetime.
package enum ObjectKind: Sendable {
  case video, json, text, playlist, archive
  /// A JPEG.
  case picture
  /// WebVTT.
  case captions
}

package enum PutCondition: Sendable, Equatable {
  case always
  /// There is no object under that key: `If-None-Match: *`.
  case absent
  /// The object has this tag: `If-Match`.
  case matching(ObjectTag)

  /// The object is as it was read.
  ///
  /// - Parameter tag: nil if there was none.
  package static func unchanged(since tag: ObjectTag?) -> PutCondition { tag.map { .matching($0) } ?? .absent }
}

extension ObjectClient {
  /// Writes an object on a condition, and recognises its own success.
  ///
  /// A client repeats a request whose answer was lost. The condition of the second request does not hold then, because the first one
  /// has written the object. So an object that has these bytes counts as written by this call.
  ///
  /// - Parameter bytes: unique to this call, or it does not matter which writer has written them.
  /// - Returns: nil if another writer has changed the object.
  package func putOwn(
    _ key: String, _ bytes: [UInt8], _ kind: ObjectKind, when condition: PutCondition
  ) throws -> ObjectTag? {
    for _ in 0..<ownWrites {
      if let tag = try put(key, .bytes(bytes), kind, when: condition) { return tag }
      do {
        if let there = try get(key, limit: bytes.count) { return there.bytes == bytes ? there.tag : nil }
      } catch is ObjectTooLarge {
        return nil
      }
      // It was removed after the write, so a new one may be created.
      guard condition == .absent else { return nil }
    }
    return nil
  }

  /// Checks that the store supports conditions of writes, with an object that is removed again.
  ///
  /// - Parameters:
  ///   - key: unique.
  ///   - name: the store's name in messages.
  /// - Throws: ``Failure``.
  package func requireConditions(tryingAt key: String, name: String) throws {
    // Only this call writes these bytes, so ``putOwn(_:_:_:when:)`` takes no other object for its own.
    let own = Array("\(UInt64.random(in: .min ... .max)) \(UInt64.random(in: .min ... .max)) ".utf8)
    func bytes(_ number: UInt8) -> [UInt8] { own + [number] }
    _ = try put(key, .bytes(bytes(1)), .archive, when: .absent)
    defer { try? delete(key, nil) }
    guard let tag = try put(key, .bytes(bytes(2)), .archive, when: .always),
      try put(key, .bytes(bytes(3)), .archive, when: .absent) == nil,
      try putOwn(key, bytes(4), .archive, when: .matching(tag)) != nil,
      try put(key, .bytes(bytes(5)), .archive, when: .matching(tag)) == nil
    else {
      throw Failure(
        .environment, "", name, "this store ignores the conditions of writes (If-None-Match, If-Match)",
        advice: "take one that knows them")
    }
  }
}

/// Attempts to create an object that others remove meanwhile.
private let ownWrites = 3
