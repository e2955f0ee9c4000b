// A cache of a session's directory, so that a worker does not list a long one for each batch. It is an extended attribute of the
// directory, and is valid as long as the directory and its views are unchanged. If it is invalid, or the file system has no
// attributes, the worker reads the files.

import CLinux
import Encoding
import FileSystem
import Glibc

package struct SessionIndexCache: Equatable {
  /// The number of segments.
  package var count: Int
  /// The starts of the latest of them, in order.
  var recent: [Int64]
  /// The starts of the recent segments that the views lack.
  package var behind: [Int64]
  /// The views that the session has.
  var views: ViewKinds

  /// Shorter sessions are read as fast without a cache.
  static let leastCount = 8
  /// Number of latest segments in the cache: enough for batches that come late.
  static let recentCount = 64
  private static let name = "user.segment-encoder"
  /// The version of the format.
  private static let version: Int64 = 2

  /// Returns the cache; nil if it is invalid or missing.
  package static func read(of directory: String) -> SessionIndexCache? {
    var words = [Int64](repeating: 0, count: 1_024)
    let size = words.withUnsafeMutableBytes { getxattr(directory, name, $0.baseAddress, $0.count) }
    guard size >= 6 * 8, size % 8 == 0, let stamp = stamp(of: directory) else { return nil }
    words = Array(words.prefix(size / 8))
    let recentCount = Int(clamping: words[4])
    guard words[0] == version, words[1] == stamp, (1...(words.count - 5)).contains(recentCount) else { return nil }
    return SessionIndexCache(
      count: Int(words[2]), recent: Array(words[5..<(5 + recentCount)]), behind: Array(words[(5 + recentCount)...]),
      views: ViewKinds(rawValue: words[3]).intersection(.known))
  }

  /// Writes the cache if possible. Call it with the session locked, after all changes of the directory.
  package func write(to directory: String) {
    // A later change in the same tick of the file system's clock would not be detected.
    guard count >= Self.leastCount, Self.passTick(of: directory), let stamp = Self.stamp(of: directory) else { return }
    let words = [Self.version, stamp, Int64(count), views.rawValue, Int64(recent.count)] + recent + behind
    // Where it cannot be kept, the session is read in full next time.
    _ = words.withUnsafeBytes { setxattr(directory, Self.name, $0.baseAddress, $0.count, 0) }
  }

  /// Returns the cache after segments were published.
  ///
  /// - Parameter areBehind: whether the views lack them; else the views lack none.
  func adding(_ starts: [Int64], areBehind: Bool) -> SessionIndexCache {
    var cache = self
    cache.count += starts.count
    cache.behind = areBehind ? (behind + starts).sorted() : []
    // Keep all segments that the views lack, and one that they have.
    let all = (recent + starts).sorted()
    cache.recent = all.suffix(max(Self.recentCount, cache.behind.count + 1))
    return cache
  }

  /// Returns the cache after the first segments were removed.
  ///
  /// - Parameter startMs: the start of the first segment that stays.
  func removing(before startMs: Int64, count removed: Int) -> SessionIndexCache {
    var cache = self
    cache.count -= removed
    cache.recent.removeAll { $0 < startMs }
    return cache
  }

  /// Removes a cache that is wrong.
  package static func forget(of directory: String) { removexattr(directory, name) }

  /// Waits some milliseconds, until later changes of the directory show in its time.
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

  /// A stamp that changes with any name in the directory and with the views.
  private static func stamp(of directory: String) -> Int64? {
    // A network file system may report old times.
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard clinux_is_remote(descriptor) == 0 else { return nil }
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for name in [".", IndexText.jsonFile, IndexText.scriptFile] {
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

extension SessionDirectory {
  /// Returns the published segments that a batch shown from `range.lowerBound` to `range.upperBound` can touch.
  ///
  /// - Parameter cache: the cache of the session; set to nil if it is wrong.
  package func segments(near range: Range<Int64>, _ cache: inout SessionIndexCache?) throws -> [PublishedSegment] {
    do {
      let recent = cache.flatMap { cache in cache.recent[0] < range.lowerBound ? cache.recent : nil }
      return try segments(near: range, among: recent ?? publishedStarts())
    } catch is DamagedOutput where cache != nil {
      // The operator has moved segments away.
      SessionIndexCache.forget(of: path)
      cache = nil
      return try segments(near: range, among: publishedStarts())
    }
  }

  private func segments(near range: Range<Int64>, among starts: [Int64]) throws -> [PublishedSegment] {
    let first = starts.firstIndex { $0 >= range.lowerBound } ?? starts.endIndex
    // Segments overlap by less than they last, so only the one before can reach into the range.
    let candidates = starts[max(0, first - 1)...].prefix { $0 < range.upperBound }
    return try candidates.map(segment)
  }
}
