/// Keys whose values are lists of events, in exports and in recorders' requests. The scanner passes on these events one by one.
enum EventList: String, CaseIterable {
  case snapshots
  case snapshotsByWindowId
  case snapshotData = "$snapshot_data"
  /// At the top of a line only: an event has a key of this name, too.
  case data
  /// The same. The steps of an agent.
  case history

  private static let keys = allCases.map { ($0, Array("\"\($0.rawValue)\"".utf8)) }

  /// - Parameter key: as written, with its quotes.
  init?(key: ArraySlice<UInt8>) {
    guard let found = Self.keys.first(where: { $0.1.elementsEqual(key) }) else { return nil }
    self = found.0
  }
}
