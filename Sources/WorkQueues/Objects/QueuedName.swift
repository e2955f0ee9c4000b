import FileSystem

/// The rule for names of batches in a queue.
package enum QueuedName {
  /// The maximum bytes of a name.
  package static let maximumBytes = 1_024

  package static func check(_ name: String) throws(Failure) {
    if let fault = fault(of: name) {
      throw Failure(.usage, "add", "\(name.prefix(80))", "its name \(fault)", advice: "name it otherwise")
    }
  }

  /// Returns the reason why a name is unusable; nil if it is usable.
  package static func fault(of name: String) -> String? {
    if name.isEmpty { return "is missing or empty" }
    if name.utf8.count > maximumBytes { return "is longer than \(maximumBytes) bytes" }
    return name.utf8.contains(0) ? "holds a NUL" : nil
  }
}
