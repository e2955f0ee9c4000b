// The interface of an object store: whole objects under keys, each written whole or not at all, and on a condition where it
// matters. Nothing here knows of HTTP, or of what the objects are.

import FileSystem

/// An object store, for several threads at once.
///
/// All of it throws when the store cannot be asked, or refuses (no such bucket, no permission): the environment's failure,
/// never a batch's. Transient failures are retried a few times first.
package protocol ObjectClient: Sendable {
  /// The bytes of an object.
  ///
  /// - Parameter limit: more bytes are not read.
  /// - Returns: nil where there is none.
  /// - Throws: ``ObjectTooLarge``.
  func get(_ key: String, limit: Int) throws -> StoredObject?

  /// Writes an object's bytes to a new file.
  ///
  /// - Returns: nil, and no file, where there is none.
  /// - Throws: ``ObjectTooLarge``; ``DiskError``.
  func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag?

  /// The size, tag and age of an object; nil if there is none.
  func head(_ key: String) throws -> ObjectInfo?

  /// Writes an object.
  ///
  /// - Returns: nil where the condition does not hold. It may have been this very call that made it so: an answer that was
  ///   lost on its way, and the call tried again.
  func put(_ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition) throws -> ObjectTag?

  /// Copies an object within the store, over what is there.
  ///
  /// - Returns: whether there was one that is known by this tag, as far as the store can be asked for that.
  func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool

  /// Removes an object.
  ///
  /// - Parameter tag: when it is known by another one, it stays, where the store knows that condition; nil for whatever is there.
  func delete(_ key: String, _ tag: ObjectTag?) throws

  /// The first objects whose keys begin with `prefix` and come after `key`, in the order of their keys: as many as the store likes
  /// to tell at once, none at the end.
  func list(_ prefix: String, after key: String?) throws -> [ObjectInfo]
}

/// The tag of an object's bytes: other content has another tag. To be compared, and handed back, nothing else.
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
  /// Since it was written, in seconds, by the store's own clock; nil where the store was asked for a list.
  package let ageS: Int?

  package init(key: String, size: Int, tag: ObjectTag, ageS: Int? = nil) {
    self.key = key
    self.size = size
    self.tag = tag
    self.ageS = ageS
  }
}

package enum ObjectBody: Sendable {
  case bytes([UInt8])
  /// The bytes of this file.
  case file(String)
}

/// The kind of an object for clients: its media type, and for how long it may be kept.
package enum ObjectKind: Sendable {
  case video, json, text, playlist, cues, image, archive
}

/// A store that writes where it was told not to is none for us: nothing there would be published once.
package struct UnconditionalStore: EnvironmentFailure, CustomStringConvertible {
  package let name: String
  package var description: String {
    "\(name): this store ignores the conditions of writes (If-None-Match, If-Match); take one that knows them"
  }
}

extension ObjectClient {
  /// Sees whether the store keeps the conditions of writes, by an object that is removed again.
  ///
  /// - Parameters:
  ///   - key: unique.
  ///   - name: what the store is called in messages.
  /// - Throws: ``UnconditionalStore``.
  package func requireConditions(tryingAt key: String, name: String) throws {
    _ = try put(key, .bytes([1]), .archive, when: .absent)
    defer { try? delete(key, nil) }
    guard let tag = try put(key, .bytes([2]), .archive, when: .always),
      try put(key, .bytes([3]), .archive, when: .absent) == nil,
      try put(key, .bytes([4]), .archive, when: .matching(tag)) != nil,
      try put(key, .bytes([5]), .archive, when: .matching(tag)) == nil
    else { throw UnconditionalStore(name: name) }
  }
}

package enum PutCondition: Sendable, Equatable {
  case always
  /// There is none under that key: `If-None-Match: *`.
  case absent
  /// The object is still this: `If-Match`.
  case matching(ObjectTag)

  /// It is as it was read; nil where there was none.
  package static func unchanged(since tag: ObjectTag?) -> PutCondition { tag.map { .matching($0) } ?? .absent }
}

/// An object is larger than the reader's limit.
package struct ObjectTooLarge: EnvironmentFailure, CustomStringConvertible {
  package let key: String
  package let limit: Int

  package init(key: String, limit: Int) {
    self.key = key
    self.limit = limit
  }

  package var description: String { "\(key): more than the limit of \(limit) bytes" }
}
