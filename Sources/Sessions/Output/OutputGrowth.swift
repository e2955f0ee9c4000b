// How fast an output grows: the bytes of the files that came in the last day. Nothing is kept for it, and only sessions that have
// changed are looked at.

import FileSystem
import FrameBatches
import Glibc

package struct OutputGrowth: Sendable, Equatable {
  private static let dayMs: Int64 = 86_400_000
  /// An output younger than this, in milliseconds, says nothing of a day.
  private static let leastMs: Int64 = 3_600_000
  /// Maximum number of files that are looked at.
  private static let maximumFiles = 500_000

  /// The bytes that a day adds; nil if nothing came in the last day, or the output is too young or too large to say.
  package let bytesADay: Int?

  /// - Parameter nowMs: unix milliseconds.
  package init(of output: String, nowMs: Int64 = WallClock.nowMs) throws(DiskError) {
    var (bytes, firstMs, files) = (0, Int64.max, 0)
    let sinceMs = nowMs - Self.dayMs
    var isOlder = false
    for entry in try Directory.entries(ifAt: output) where entry.kind == .directory && SessionID(entry.name) != nil {
      guard files <= Self.maximumFiles else { break }
      // It may be pruned meanwhile.
      guard let session = try? Directory(opening: output + "/" + entry.name, followingLinks: false) else { continue }
      var status = stat()
      guard fstat(session.descriptor, &status) == 0 else { continue }
      // A new name changes the time of the directory.
      guard WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) >= sinceMs else {
        isOlder = true
        continue
      }
      try? session.visit { name in
        files += 1
        guard files <= Self.maximumFiles, fstatat(session.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
          status.st_mode & S_IFMT == S_IFREG
        else { return }
        let cameMs = WallClock.unixMs(status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
        guard cameMs >= sinceMs else {
          isOlder = true
          return
        }
        // A file takes whole blocks of the disk.
        bytes += 512 * Int(status.st_blocks)
        firstMs = min(firstMs, cameMs)
      }
    }
    // In an output of half a day, the other half brings as much.
    let spanMs = isOlder ? Self.dayMs : nowMs - min(firstMs, nowMs)
    guard bytes > 0, files <= Self.maximumFiles, spanMs >= Self.leastMs else {
      bytesADay = nil
      return
    }
    bytesADay = Int(Double(bytes) * Double(Self.dayMs) / Double(spanMs))
  }

  /// Returns the days after which some free bytes are used up; nil if that is not known.
  package func daysLeft(free: Int) -> Int? { bytesADay.map { free / max(1, $0) } }
}
