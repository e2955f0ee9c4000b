// A cache of a session's directory, so that a long one need not be looked through for each batch. It is kept as an
// extended attribute of the directory itself and holds as long as that directory and the views in it are as they were
// then, by any writer. Where it does not hold, or the file system keeps none, all is found out from the files.

import CLinux
import FileSystem
import Glibc

package struct SessionIndexCache: Equatable {
  /// Segments with a manifest.
  package var count: Int
  /// The starts of the latest of them, in order.
  var recent: [Int64]
  /// Those among the recent that the views do not tell of yet.
  package var behind: [Int64]
  /// Whether there is an event for Sentry beside each manifest.
  var hasEvents: Bool
  /// Whether the session can be played while it grows.
  var hasHLS: Bool
  /// Whether players have its pictures in small.
  var hasThumbnails: Bool

  /// Shorter sessions are looked through as fast.
  static let leastCount = 8
  /// Number of latest segments in the cache: enough for batches that come late.
  static let recentCount = 64
  private static let name = "user.segment-encoder"
  /// Of what is written: changes with its form.
  private static let version: Int64 = 2

  /// - Returns: nil when it does not hold, or there is none.
  package static func read(of directory: String) -> SessionIndexCache? {
    var words = [Int64](repeating: 0, count: 1_024)
    let size = words.withUnsafeMutableBytes { getxattr(directory, name, $0.baseAddress, $0.count) }
    guard size >= 6 * 8, size % 8 == 0, let stamp = stamp(of: directory) else { return nil }
    words = Array(words.prefix(size / 8))
    let (flags, recentCount) = (words[3], Int(clamping: words[4]))
    guard words[0] == version, words[1] == stamp, (1...(words.count - 5)).contains(recentCount) else { return nil }
    return SessionIndexCache(
      count: Int(words[2]), recent: Array(words[5..<(5 + recentCount)]), behind: Array(words[(5 + recentCount)...]),
      hasEvents: flags & 1 != 0, hasHLS: flags & 2 != 0, hasThumbnails: flags & 4 != 0)
  }

  /// Keeps it, where that can be done; call it with the session locked, after all that changes the directory.
  package func write(to directory: String) {
    // A change later in the same tick of the file system's clock would not be seen.
    guard count >= Self.leastCount, Self.passTick(of: directory), let stamp = Self.stamp(of: directory) else { return }
    let flags: Int64 = (hasEvents ? 1 : 0) | (hasHLS ? 2 : 0) | (hasThumbnails ? 4 : 0)
    let words = [Self.version, stamp, Int64(count), flags, Int64(recent.count)] + recent + behind
    // Where it cannot be kept, the session is read in full next time.
    _ = words.withUnsafeBytes { setxattr(directory, Self.name, $0.baseAddress, $0.count, 0) }
  }

  /// It turned out to be wrong.
  package static func forget(of directory: String) { removexattr(directory, name) }

  /// Waits, some milliseconds at most, until what changes in the directory from now on shows in its time.
  private static func passTick(of directory: String) -> Bool {
    var (status, now) = (stat(), timespec())
    guard lstat(directory, &status) == 0 else { return false }
    // Times in whole seconds, or twos: too long to wait for.
    if status.st_mtim.tv_nsec == 0 { return time(nil) - status.st_mtim.tv_sec > 2 }
    for _ in 0..<40 {
      clock_gettime(CLOCK_REALTIME_COARSE, &now)
      if (now.tv_sec, now.tv_nsec) > (status.st_mtim.tv_sec, status.st_mtim.tv_nsec) { return true }
      usleep(500)
    }
    return false
  }

  /// Changes whenever a name in the directory, or one of the views, does.
  private static func stamp(of directory: String) -> Int64? {
    // A network file system may report old times.
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard clinux_is_remote(descriptor) == 0 else { return nil }
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for name in [".", SessionView.jsonFile, SessionView.scriptFile] {
      var status = stat()
      guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
      let size = name == "." ? 0 : Int(status.st_size)
      for value in [Int(status.st_ino), size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec] {
        // FNV-1a, a word at a time.
        hash = (hash ^ UInt64(bitPattern: Int64(value))) &* 0x100_0000_01b3
        hash ^= hash >> 29
      }
    }
    return Int64(bitPattern: hash)
  }
}
