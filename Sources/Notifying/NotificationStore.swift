import FileSystem

/// The events that their receiver has refused, for several threads and processes at once. Each is in it until it is delivered or
/// removed by an operator.
package protocol NotificationStore: Sendable {
  /// The place in messages.
  var place: String { get }
  /// Adds an event, durably. One with the same key is replaced.
  func add(_ notification: RefusedNotification) throws
  /// The keys of all events, sorted.
  func keys() throws -> [String]
  /// Returns an event; nil if there is none with this key.
  func find(_ key: String) throws -> RefusedNotification?
  /// Removes an event, if it is there.
  func remove(_ key: String) throws
}

extension NotificationStore {
  /// Returns an event.
  ///
  /// - Throws: ``Failure``.
  package func notification(_ key: String) throws -> RefusedNotification {
    guard RefusedNotification.isKey(key), let found = try find(key) else {
      throw Failure(
        .usage, "no event \(key.prefix(80)) in \(place)",
        advice: "`quarantine list --events` names those that are there")
    }
    return found
  }

  /// All events, the oldest first.
  package func all() throws -> [RefusedNotification] {
    // An event that was delivered meanwhile is gone.
    try keys().compactMap(find).sorted { ($0.timeMs, $0.key) < ($1.timeMs, $1.key) }
  }

  /// The name of an event's file.
  static func file(_ key: String) -> String { key + ".json" }

  /// The key of a file; nil for another file.
  static func key(ofFile name: String) -> String? {
    let key = String(name.dropLast(5))
    return RefusedNotification.isKey(key) && file(key) == name ? key : nil
  }
}
