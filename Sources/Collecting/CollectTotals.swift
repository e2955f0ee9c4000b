import FileSystem

/// The work of a collector since its start.
package struct CollectTotals: Sendable {
  /// Pictures in batches.
  package internal(set) var pictures = 0
  /// The sessions of these batches.
  package internal(set) var sessions: Set<String> = []
  /// Versions of files that were replaced or removed before they were copied.
  package internal(set) var lost = 0
  /// Pictures from before `--since`.
  package internal(set) var older = 0
  /// Other files that were left.
  package internal(set) var left = 0
  /// Folders of which nothing could be taken in their first minute.
  package internal(set) var silent = 0

  init() {}
}

extension CollectTotals {
  /// The totals in a sentence.
  ///
  /// - Parameters:
  ///   - place: where the batches are.
  ///   - waiting: pictures that no batch has.
  package func description(in place: String, waiting: Int = 0) -> String {
    var parts = [
      "handed over \(count(pictures, "picture")) of \(count(sessions.count, "session")) in \(place)"
    ]
    if waiting > 0 {
      parts.append("\(count(waiting, "picture")) left for the next run: how long the newest one stays is not known yet")
    }
    if lost > 0 { parts.append("\(lost) lost: replaced or removed before they could be read") }
    if older > 0 { parts.append("\(older) older than --since left") }
    if left > 0 { parts.append("\(count(left, "other file")) left, for the reasons in the log") }
    if silent > 0 { parts.append("nothing to take in \(count(silent, "folder"))") }
    return parts.joined(separator: "; ")
  }
}
