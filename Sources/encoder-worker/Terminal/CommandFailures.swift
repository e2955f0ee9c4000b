// Failures of commands that have an exit status of their own.

/// The receiver refused an event once more.
struct StillRefused: Error, CustomStringConvertible {
  let key: String
  let receiver: String
  let cause: String
  var description: String { "send \(key) to \(receiver): \(cause)" }
}

/// A path that has no sessions.
struct NothingToServe: Error, CustomStringConvertible {
  let path: String
  let cause: String
  var description: String { "\(path): \(cause)" }
}
