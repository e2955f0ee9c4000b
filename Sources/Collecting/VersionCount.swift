/// The events of one name since the last look.
package struct FileChanges: Equatable {
  /// Files that were closed after writing.
  package var closed = 0
  /// Files that were renamed to the name: each is a version.
  package var moved = 0

  package init(closed: Int = 0, moved: Int = 0) { (self.closed, self.moved) = (closed, moved) }

  var count: Int { closed + moved }
}

/// The versions of one name: those that events announced, and those that were seen.
///
/// A new file may be closed several times before it is whole. A name that was written again is whole at each close.
struct VersionCount {
  private var announced = 0
  private var seen = 0
  private var reported = 0
  /// Versions that were seen, with those that were replaced before they were copied.
  private var found = 0

  /// Whether more than one version was seen.
  var isRewritten: Bool { found > 1 }

  /// Counts a version that was seen.
  ///
  /// - Parameter changes: the events since the last look; nil if a scan saw it, after its events, if there were any.
  /// - Returns: the versions that were lost, and are not reported yet.
  mutating func add(found changes: FileChanges?) -> Int {
    announced = found == 0 ? max(1, changes?.moved ?? 1) : announced + (changes?.count ?? 1)
    seen += 1
    found += 1
    return takeLost()
  }

  /// Counts events after which no other version was seen.
  ///
  /// - Returns: the versions that were lost, and are not reported yet.
  mutating func add(unseen changes: FileChanges) -> Int {
    if found > 0 { announced += isRewritten ? changes.count : changes.moved }
    return takeLost()
  }

  /// Takes back that the last version was seen: it was replaced before it was copied.
  mutating func forgetLast() { seen -= 1 }

  private mutating func takeLost() -> Int {
    let lost = max(0, announced - seen - reported)
    reported += lost
    return lost
  }
}
