// The session that a batch's name says, for a batch that names none itself.

import FileSystem

/// A session by the name of a batch.
package struct SessionName: Sendable, Equatable {
  /// The name without an archive's ending, perhaps with folders before it.
  let path: String
  /// The session; it may be no ``SessionID``.
  let text: String
  /// How the pattern of the options read the name; nil if there is none, or if it leaves the name alone.
  private(set) var reading: Reading?

  /// A name and the pattern that read it.
  struct Reading: Equatable {
    let name: String
    let pattern: SessionPattern
    /// Whether the name fits the pattern; else the session is the name up to `@`.
    let fits: Bool

    /// Says that the name does not fit.
    var mismatch: String {
      "the name \(name.shortened(to: 80)) does not fit --session-from \(pattern.description.shellQuoted)"
    }

    /// The warning on a name that does not fit; nil for one that fits.
    func warning(_ session: SessionID) -> String? {
      fits ? nil : "\(mismatch), so its session is \(session), as without the option"
    }

    /// The fault of a session that cannot be used.
    func fault(_ session: String) -> String {
      let shown = "\"\(session.shortened(to: 140))\""
      return fits
        ? "--session-from \(pattern.description.shellQuoted) reads the session id \(shown) in the name "
          + "\"\(name.shortened(to: 80))\", and it cannot be used"
        : "\(mismatch), and \(shown) cannot be used as a session id"
    }
  }

  init(of path: String, _ pattern: SessionPattern?) {
    self.path = path
    let name = lastComponent(of: path)
    let own = String(name.prefix { $0 != "@" })
    guard let pattern, pattern.describesAt || own.utf8.count == name.utf8.count else {
      text = own
      return
    }
    let found = pattern.session(in: path)
    text = found ?? own
    let components = path.split(separator: "/").suffix(pattern.folders + 1)
    reading = Reading(name: components.joined(separator: "/"), pattern: pattern, fits: found != nil)
  }
}

extension SessionPattern {
  /// Returns a path that has the folders of the pattern, by the file system if the path itself has not.
  func place(of path: String) -> String {
    let components = path.split(separator: "/").filter { $0 != "." }
    guard components.count > folders, !components.suffix(folders + 1).contains("..") else {
      return DurableFile.resolved(path)
    }
    return components.joined(separator: "/")
  }
}
