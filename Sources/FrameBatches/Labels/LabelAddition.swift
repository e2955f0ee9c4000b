// Labels for a session that is published.

/// Labels for a published session.
package struct LabelAddition: Sendable {
  /// The name of the batch.
  package let name: String
  package let session: SessionID
  private let source: Source
  private let warnings: [String]

  private enum Source: Sendable {
    /// In the order of their times.
    case labels([Label])
    /// A file, whose times may count from the session's first picture.
    case file(LabelFile)
  }

  /// - Parameter file: its times may count from the session's first picture.
  package init(_ file: LabelFile, to session: SessionID) {
    (name, self.session, source, warnings) = (file.name, session, .file(file), [])
  }

  /// - Parameter labels: of a session, in the order of their times.
  package init(_ labels: [Label], to session: SessionID, name: String) {
    (self.name, self.session, source, warnings) = (name, session, .labels(labels), [])
  }

  /// - Parameter labels: those that cannot be used are left out, with a warning.
  package init(_ labels: LabelList, to session: SessionID, name: String, limits: Limits = Limits()) {
    var labels = labels
    (self.name, self.session) = (name, session)
    source = .labels(labels.takeSorted(within: limits.instants))
    warnings = [labels.warning].compactMap(\.self)
  }

  /// Returns the labels in the order of their times, and warnings.
  ///
  /// - Parameter startMs: the capture of the session's first picture, in unix milliseconds.
  package func labels(from startMs: Int64, limits: Limits = Limits()) -> (labels: [Label], warnings: [String]) {
    switch source {
    case .labels(let labels): return (labels, warnings)
    case .file(let file):
      var (list, note) = file.labels(from: startMs)
      let labels = list.takeSorted(within: limits.instants)
      return (labels, [note, list.warning].compactMap(\.self))
    }
  }

  /// The times of the first and the last label; nil if they count from the session's first picture, or there are none.
  package var times: ClosedRange<Int64>? {
    guard case .labels(let labels) = source, let first = labels.first, let last = labels.last else { return nil }
    return first.timeMs...last.timeMs
  }
}
