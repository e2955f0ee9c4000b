/// How a store keeps the segments of a batch.
package enum StoreLayout: String, Sendable, CaseIterable {
  /// Each has a video and a manifest, as in a directory.
  case plain
  /// They are one object: see `Pack.swift`.
  case packed
}
