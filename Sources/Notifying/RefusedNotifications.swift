import FileSystem
import Sessions

/// The events that their receiver has refused, for several threads and processes at once: `notifications/KEY.json` of a spool or an
/// object store. Each is there until it is delivered or removed by an operator.
package struct RefusedNotifications: Sendable {
  package static let prefix = "notifications/"

  private let objects: any ObjectClient
  /// The place in messages.
  private let place: String

  /// - Parameter name: the store's name in messages, with a slash at its end.
  package init(in objects: any ObjectClient, name: String) {
    self.objects = objects
    place = name + Self.prefix
  }

  /// - Parameter spool: the path of a spool.
  package init(spool: String) { self.init(in: DirectoryObjects(spool), name: spool + "/") }

  /// Adds an event, durably. One with the same key is replaced.
  package func add(_ notification: RefusedNotification) throws {
    _ = try objects.put(Self.name(of: notification.key), .bytes(notification.bytes), .json, when: .always)
  }

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
    var (last, found): (String?, [RefusedNotification]) = (nil, [])
    while case let page = try objects.list(Self.prefix, after: last), let end = page.last {
      last = end.key
      // An event that was delivered meanwhile is gone.
      found += try page.compactMap { try Self.key(of: $0.key).flatMap(find) }
    }
    return found.sorted { ($0.timeMs, $0.key) < ($1.timeMs, $1.key) }
  }

  /// Removes an event, if it is there.
  package func remove(_ key: String) throws { try objects.delete(Self.name(of: key), nil) }

  /// - Returns: nil if there is no event with this key.
  private func find(_ key: String) throws -> RefusedNotification? {
    try objects.get(Self.name(of: key), limit: RefusedNotification.maximumBytes)
      .flatMap { RefusedNotification($0.bytes, named: key) }
  }

  private static func name(of key: String) -> String { prefix + key + ".json" }

  /// The key of an object; nil for another object.
  private static func key(of name: String) -> String? {
    let key = String(name.dropFirst(prefix.utf8.count).dropLast(5))
    return RefusedNotification.isKey(key) && Self.name(of: key) == name ? key : nil
  }
}
