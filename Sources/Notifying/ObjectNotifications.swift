import Sessions

/// Refused events in an object store: `notifications/KEY.json`.
package struct ObjectNotifications: NotificationStore {
  private static let prefix = "notifications/"

  private let objects: any ObjectClient
  private let name: String

  /// - Parameter name: the store's name in messages.
  package init(_ objects: any ObjectClient, name: String) {
    self.objects = objects
    self.name = name
  }

  package var place: String { name + Self.prefix }

  package func add(_ notification: RefusedNotification) throws {
    _ = try objects.put(path(notification.key), .bytes(notification.bytes), .json, when: .always)
  }

  package func keys() throws -> [String] {
    var (last, keys): (String?, [String]) = (nil, [])
    while case let page = try objects.list(Self.prefix, after: last), let end = page.last {
      last = end.key
      keys += page.compactMap { Self.key(ofFile: String($0.key.dropFirst(Self.prefix.count))) }
    }
    return keys
  }

  package func find(_ key: String) throws -> RefusedNotification? {
    try objects.get(path(key), limit: RefusedNotification.maximumBytes).flatMap {
      RefusedNotification($0.bytes, named: key)
    }
  }

  package func remove(_ key: String) throws { try objects.delete(path(key), nil) }

  private func path(_ key: String) -> String { Self.prefix + Self.file(key) }
}
