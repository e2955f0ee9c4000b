import Encoding

/// The manifests of a stored session that cannot be read. They are fetched again some seconds later.
struct DamagedManifests {
  /// Maximum number of manifests of a session that may be damaged; those of all others are shown.
  private static let maximum = 16
  /// Milliseconds after which damaged manifests are fetched again.
  private static let pauseMs = 10_000

  /// By the starts of their segments, in unix milliseconds.
  private var faults: [Int64: BadSession] = [:]
  /// Those that were fetched since, and not published here.
  var mended: Set<Int64> = []
  /// When to try again, in monotonic milliseconds.
  private var retryMs = 0

  func fault(of startMs: Int64) -> BadSession? { faults[startMs] }

  /// Whether there are some, and it is time to fetch them again.
  func isDue(atMs nowMs: Int) -> Bool { !faults.isEmpty && nowMs >= retryMs }

  /// Takes note of manifests that were fetched together.
  ///
  /// - Parameter found: the faults among them.
  /// - Throws: a fault if there are many.
  mutating func note(_ found: [Int64: BadSession], of group: [SessionEntry]) throws {
    for startMs in group.map(\.startMs) {
      if let fault = found[startMs] {
        faults[startMs] = fault
        mended.remove(startMs)
      } else if faults[startMs] != nil {
        mended.insert(startMs)
      }
    }
    if faults.count - mended.count > Self.maximum, let first = found.values.first { throw first }
  }

  /// Takes the mended ones out, which are published now, and those of segments that are gone.
  mutating func settle(nowMs: Int, where isThere: (Int64) -> Bool) {
    faults = faults.filter { isThere($0.key) && !mended.contains($0.key) }
    mended = []
    retryMs = nowMs + Self.pauseMs
  }
}
