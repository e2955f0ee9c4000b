import FileSystem

/// A page or screen that a recorder has named: the address of a web page, or the name of a screen of an app.
package struct PageView: Sendable, Equatable {
  /// The most of a batch. Further ones are left out.
  static let most = 1_000
  private static let nameBytes = 200

  /// Unix milliseconds.
  package let timeMs: Int64
  package let name: String

  /// - Parameter address: its query, its fragment, the parameters of its path and a user's name are left out: they may be secret. So
  ///   are the contents of an address that holds its page.
  /// - Returns: nil if nothing is left.
  init?(timeMs: Int64, address: String) {
    // A mark on an ASCII character makes another character of the two, but not another scalar.
    var name = String(String.UnicodeScalarView(address.unicodeScalars.prefix { !["?", "#", ";"].contains($0) }))
    for scheme in ["data:", "javascript:"] where name.lowercased().hasPrefix(scheme) { name = scheme }
    if let authority = name.firstRange(of: "://") {
      let rest = name[authority.upperBound...]
      let end = rest.firstIndex(of: "/") ?? rest.endIndex
      if let user = rest[..<end].lastIndex(of: "@") { name.removeSubrange(authority.upperBound...user) }
    }
    guard !name.isEmpty else { return nil }
    (self.timeMs, self.name) = (timeMs, name.oneLine.shortened(to: Self.nameBytes))
  }

  private init(timeMs: Int64, name: String) { (self.timeMs, self.name) = (timeMs, name) }

  /// The same page at another time.
  func at(_ timeMs: Int64) -> PageView { PageView(timeMs: timeMs, name: name) }

  /// Adds it to a list in order, unless the page is there already.
  func add(to list: inout [PageView]) {
    if list.count < Self.most, list.last?.name != name { list.append(self) }
  }
}
