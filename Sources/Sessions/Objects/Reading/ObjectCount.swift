import FileSystem
import FrameBatches

/// The number of objects below a prefix, and the age of the oldest: of those that some lists of the store name.
package struct ObjectCount: Sendable, Equatable {
  package private(set) var count = 0
  /// Seconds since the oldest was written; nil if there is none, or the store does not tell it.
  package private(set) var oldestS: Int?
  /// Whether there may be more objects behind those that were listed.
  package fileprivate(set) var isPartial = false

  fileprivate mutating func add(_ object: ObjectInfo) {
    count += 1
    if let ageS = object.ageS { oldestS = max(oldestS ?? 0, ageS) }
  }
}

extension StoredSessions {
  /// The prefixes of the objects that name sessions in a state.
  package enum State: CaseIterable, Sendable {
    /// Sessions that are to end, or whose end is not announced yet.
    case ending
    /// Sessions that may go on; workers that end quiet sessions know them.
    case open

    var prefix: String {
      switch self {
      case .ending: EndRequestObjects.prefix
      case .open: OpenSessions.prefix
      }
    }
  }

  /// Counts the sessions in a state.
  ///
  /// - Parameter lists: maximum number of lists that the store is asked for.
  package func count(_ state: State, lists: Int) throws -> ObjectCount {
    try count(below: state.prefix, lists: lists) { SessionID(String($0)) != nil }
  }

  /// Counts the objects below a prefix.
  ///
  /// - Parameters:
  ///   - lists: maximum number of lists that the store is asked for.
  ///   - isCounted: gets the rest of a key behind the prefix.
  /// - Throws: ``Failure`` for a list out of order; an error of the store.
  package func count(
    below prefix: String, lists: Int, where isCounted: (Substring) -> Bool
  ) throws -> ObjectCount {
    var walk = walk(prefix)
    var count = ObjectCount()
    for _ in 0..<lists {
      guard let page = try walk.next() else { return count }
      for object in page where isCounted(object.key.dropFirst(prefix.count)) { count.add(object) }
    }
    count.isPartial = true
    return count
  }
}
