// Which segments of a stored session become one pack. A pack is never split, only joined with what follows it, so each step leaves fewer
// objects, and a session that was compacted has nothing left to do. Pure.

struct CompactionPlan {
  /// Segments that become one pack, or few if their pictures turn out to be of several kinds.
  struct Group {
    let entries: [SessionEntry]
    /// The kind of the pack before; nil if there is none, or if another group comes before.
    let lastKind: String?
    /// When the latest of the segments was published, in unix milliseconds; nil if nobody knows.
    let publishedMs: Int64?

    /// The number of objects that it replaces.
    var objects: Int { Set(entries.flatMap(\.objectNames)).count }
  }

  /// The number of segments from which on a step gets no further group.
  static let maximumStep = 1_024
  /// A margin for what fragments have besides the videos, in bytes.
  private static let marginBytes = 1 << 20

  private(set) var groups: [Group] = []
  /// Segments that start before this instant need no further look.
  private(set) var throughMs: Int64

  /// - Parameters:
  ///   - entries: in order, with whole packs.
  ///   - isWhole: whether the session gets no further segments, as far as anybody knows. Otherwise the last pack may still grow.
  ///   - oldMs: segments that were published later stay as they are, in unix milliseconds; nil to take all.
  ///   - publishedMs: returns when a segment was published; nil if nobody knows. It is called in order.
  init(
    _ entries: [SessionEntry], isWhole: Bool, oldMs: Int64?, _ publishedMs: (SessionEntry) throws -> Int64?
  ) rethrows {
    let all = Self.grouped(entries)
    throughMs = entries[entries.count - 1].startMs + 1
    var (count, lastKind) = (0, nil as String?)
    for (index, group) in all.enumerated() {
      let mayGrow = !isWhole && index == all.count - 1
      if count >= Self.maximumStep || mayGrow {
        throughMs = group[0].startMs
        return
      }
      if !Self.isCompact(group) {
        let times = try group.map(publishedMs)
        if let oldMs, !times.allSatisfy({ time in time.map { $0 <= oldMs } ?? false }) {
          throughMs = group[0].startMs
          return
        }
        let latestMs = times.contains { $0 == nil } ? nil : times.compactMap { $0 }.max()
        groups.append(Group(entries: group, lastKind: lastKind, publishedMs: latestMs))
        count += group.count
        lastKind = nil
      } else {
        lastKind = group[0].pack?.kind
      }
    }
  }

  private static func isCompact(_ group: [SessionEntry]) -> Bool {
    group[0].pack.map { pack in group.allSatisfy { pack.isInFile(of: $0.pack) } } ?? false
  }

  /// Returns the segments in the groups that fit into one pack each.
  private static func grouped(_ entries: [SessionEntry]) -> [[SessionEntry]] {
    var groups: [[SessionEntry]] = []
    for unit in units(entries) {
      if let last = groups.last, canJoin(last, unit) {
        groups[groups.count - 1] += unit
      } else {
        groups.append(unit)
      }
    }
    return groups
  }

  /// Returns the segments of each pack, and those without a pack one by one.
  private static func units(_ entries: [SessionEntry]) -> [[SessionEntry]] {
    var units: [[SessionEntry]] = []
    for entry in entries {
      if let pack = entry.pack, pack.isInFile(of: units.last?.last?.pack) {
        units[units.count - 1].append(entry)
      } else {
        units.append([entry])
      }
    }
    return units
  }

  private static func canJoin(_ group: [SessionEntry], _ unit: [SessionEntry]) -> Bool {
    let (first, last, next) = (group[0], group[group.count - 1], unit[0])
    guard PackedSegment.lengthMs(of: last, before: next) != nil, (last.width + 1) / 2 == (next.width + 1) / 2,
      (last.height + 1) / 2 == (next.height + 1) / 2, unit[unit.count - 1].endMs - first.startMs <= Pack.maximumMs,
      group.count + unit.count <= Pack.maximumCount
    else { return false }
    if let own = last.pack?.kind, let other = next.pack?.kind, own.suffix(8) != other.suffix(8) { return false }
    let bytes = (group + unit).reduce(0) { $0 + ($1.pack?.fragment.count ?? $1.bytes) }
    return bytes < Pack.maximumBytes - marginBytes
  }
}
