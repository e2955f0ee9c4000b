import FileSystem

/// A walk over the keys below a prefix, in their order.
package struct ListWalk {
  private let prefix: String
  private let objects: any ObjectClient
  private let name: String
  private var last: String?

  /// - Parameters:
  ///   - name: the store's name in messages.
  ///   - key: the walk begins behind it; nil for the beginning.
  init(_ prefix: String, of objects: any ObjectClient, name: String, after key: String? = nil) {
    (self.prefix, self.objects, self.name) = (prefix, objects, name)
    last = key
  }

  /// Returns the next objects; nil at the end.
  ///
  /// - Throws: ``Failure`` for keys that are out of order: such a list might never end.
  package mutating func next() throws -> [ObjectInfo]? {
    let page = try objects.list(prefix, after: last)
    guard !page.isEmpty else { return nil }
    var before = last
    for object in page {
      guard object.key.utf8.starts(with: prefix.utf8),
        before.map({ $0.utf8.lexicographicallyPrecedes(object.key.utf8) }) ?? true
      else {
        throw Failure(
          .environment, "list", name + prefix, "the store lists keys out of order",
          advice: "check that the endpoint is an S3 store")
      }
      before = object.key
    }
    last = before
    return page
  }

  /// Leaves out the keys below a folder. Keys behind it stay.
  mutating func skip(folder: String) {
    // 0 is the character behind a slash.
    if let key = last, key.utf8.starts(with: (folder + "/").utf8) { last = folder + "0" }
  }
}
