// How fast an output grows: the bytes of the files that came in the last day. Nothing is kept for it, and only sessions that have
// changed are looked at.

import FileSystem
import FrameBatches
import Glibc

package struct OutputGrowth: Sendable, Equatable {
  /// The files that were looked at.
  struct Seen {
    let nowMs: Int64
    private(set) var bytes = 0
    private(set) var objects = 0
    private(set) var firstMs = Int64.max
    /// Whether there are files that came before the last day.
    var isOlder = false

    init(atMs nowMs: Int64) { self.nowMs = nowMs }

    var sinceMs: Int64 { nowMs - OutputGrowth.dayMs }

    /// Adds a file of so many bytes if it came in the last day. Sizes of a store may be any: the sum ends at the largest number.
    mutating func add(_ size: Int, cameMs: Int64) {
      guard cameMs >= sinceMs else {
        isOlder = true
        return
      }
      let (sum, isTooLarge) = bytes.addingReportingOverflow(size)
      bytes = isTooLarge ? .max : sum
      objects += 1
      firstMs = min(firstMs, cameMs)
    }

    /// The bytes of a day: in an output of half a day, the other half brings as much.
    ///
    /// - Parameter share: the part of the sessions that was looked at.
    func bytesADay(share: Double = 1) -> Int? { aDay(bytes, share) }

    /// The objects of a day, in the same way.
    func objectsADay(share: Double) -> Int? { aDay(objects, share) }

    private func aDay(_ seen: Int, _ share: Double) -> Int? {
      let spanMs = isOlder ? OutputGrowth.dayMs : nowMs - min(firstMs, nowMs)
      guard bytes > 0, spanMs >= OutputGrowth.leastMs else { return nil }
      let all = Double(seen) * Double(OutputGrowth.dayMs) / Double(spanMs) / share
      return all < 0x1p62 ? Int(all) : 1 << 62
    }
  }

  static let dayMs: Int64 = 86_400_000
  /// An output younger than this, in milliseconds, says nothing of a day.
  static let leastMs: Int64 = 3_600_000
  /// Maximum number of files that are looked at.
  private static let maximumFiles = 500_000

  /// The bytes that a day adds; nil if nothing came in the last day, or the output is too young or too large to say.
  package let bytesADay: Int?
  /// The objects of sessions that a day adds to a store; nil if the bytes are not known, and for a directory.
  package let objectsADay: Int?
  /// Whether they were computed from a part of the sessions.
  package let isEstimate: Bool

  /// - Parameter nowMs: unix milliseconds.
  package init(of output: String, nowMs: Int64 = WallClock.nowMs) throws(DiskError) {
    var (seen, files) = (Seen(atMs: nowMs), 0)
    for entry in try Directory.entries(ifAt: output) where entry.kind == .directory && SessionID(entry.name) != nil {
      guard files <= Self.maximumFiles else { break }
      // It may be pruned meanwhile.
      guard let session = try? Directory(opening: output + "/" + entry.name, followingLinks: false) else { continue }
      var status = stat()
      guard fstat(session.descriptor, &status) == 0 else { continue }
      // A new name changes the time of the directory.
      guard WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) >= seen.sinceMs else {
        seen.isOlder = true
        continue
      }
      try? session.visit { name in
        files += 1
        guard files <= Self.maximumFiles, fstatat(session.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
          status.st_mode & S_IFMT == S_IFREG
        else { return }
        // A file takes whole blocks of the disk.
        seen.add(
          512 * Int(status.st_blocks), cameMs: WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec))
      }
    }
    (isEstimate, objectsADay) = (false, nil)
    bytesADay = files <= Self.maximumFiles ? seen.bytesADay() : nil
  }

  init(bytesADay: Int?, objectsADay: Int?, isEstimate: Bool) {
    (self.bytesADay, self.objectsADay, self.isEstimate) = (bytesADay, objectsADay, isEstimate)
  }

  /// Returns the days after which some free bytes are used up; nil if that is not known.
  package func daysLeft(free: Int) -> Int? { bytesADay.map { free / max(1, $0) } }
}
