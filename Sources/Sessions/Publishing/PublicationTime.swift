// When something of a session was published. The time of a segment's manifest says it: publishing writes that file, and nothing
// writes it again. The times of `session.json` and of the directory also change when first segments are removed, when views are
// repaired, and when the session ends.

import Encoding
import FileSystem
import FrameBatches
import Glibc

extension SessionDirectory {
  /// Returns when a segment was published, in unix milliseconds; nil if it is gone.
  package func publishedMs(_ startMs: Int64) throws -> Int64? {
    Self.publishedMs(startMs, in: try Directory(opening: path, followingLinks: false))
  }

  static func publishedMs(_ startMs: Int64, in directory: Directory) -> Int64? {
    directory.stamp(of: SegmentName.manifest(startMs)).map { $0.modified / 1_000_000 }
  }

  /// Returns when the last of some segments was published, in unix milliseconds; nil if they are gone.
  func lastPublishedMs(of starts: some Sequence<Int64>) throws -> Int64? {
    let directory = try Directory(opening: path, followingLinks: false)
    return starts.lazy.compactMap { Self.publishedMs($0, in: directory) }.max()
  }

  /// Returns when something was last published, if that was not before an instant. The record of removed segments knows when these
  /// were published.
  ///
  /// - Parameter instantMs: in unix milliseconds.
  package func publication(since instantMs: Int64) throws -> Int64? {
    let directory: Directory
    do throws(DiskError) {
      // A network file system may report the time of a directory that is not opened as it was.
      directory = try Directory(opening: path, followingLinks: false)
    } catch {
      if error.code == ENOENT { return nil }
      throw error
    }
    // A new name changes the time of the directory. Most sessions need no other look.
    guard let changed = directory.stamp(of: ".")?.modified, changed / 1_000_000 >= instantMs else { return nil }
    func isLater(_ ms: Int64) -> Bool { ms >= instantMs }
    if let recent = SessionIndexCache.read(of: path)?.recent, let ms = try lastPublishedMs(of: recent), isLater(ms) {
      return ms
    }
    let ms = try [lastPublishedMs(of: publishedStarts()), retention()?.publishedMs].compactMap { $0 }.max()
    return ms.flatMap { isLater($0) ? $0 : nil }
  }
}
