import FileSystem
import Glibc
import Synchronization

/// The room that copies of stored sessions take on a disk. When it is full, the least recently used videos go first, then whole
/// copies. For any thread.
final class CopySpace: Sendable {
  private struct State {
    /// In bytes, with copies that readers still use.
    var total = 0
    /// By their paths: their sizes, and when they were last used, as a number that grows.
    var videos: [String: (bytes: Int, used: Int)] = [:]
    var uses = 0
  }

  /// The part of the videos that goes at once.
  private static let share = 8

  private let limit: Int
  private let freeSpace: FreeSpace
  /// A directory on the disk.
  private let path: String
  private let state = Mutex(State())
  private let evictCopy = Mutex<(@Sendable () -> Bool)?>(nil)

  /// - Parameter limit: maximum number of bytes.
  init(limit: Int, _ freeSpace: FreeSpace, at path: String) {
    (self.limit, self.freeSpace, self.path) = (limit, freeSpace, path)
  }

  var total: Int { state.withLock { $0.total } }

  /// Sets the function that removes the least recently used copy, and returns whether there was one.
  func onShortage(_ body: @escaping @Sendable () -> Bool) { evictCopy.withLock { $0 = body } }

  /// Makes room for bytes that are about to be written, and counts them.
  ///
  /// - Throws: ``LowDiskSpace``; ``Failure`` if the copies in use take all; ``DiskError``.
  func take(_ bytes: Int) throws {
    while true {
      let fits = state.withLock { state in
        guard bytes <= limit - state.total else { return false }
        state.total += bytes
        return true
      }
      if fits {
        do {
          return try freeSpace.require(for: bytes, at: path)
        } catch {
          give(bytes)
          guard error is LowDiskSpace, evict() else { throw error }
        }
      } else if bytes > limit || !evict() {
        throw Failure(
          .environment, "copy", "\(bytes) bytes from the store",
          "the copies of sessions that are in use take \(total) of \(limit) bytes")
      }
    }
  }

  /// Counts bytes no more.
  func give(_ bytes: Int) { state.withLock { $0.total -= bytes } }

  /// Notes the use of a video.
  ///
  /// - Parameter taken: its bytes, if it is new.
  func use(_ path: String, taken: Int? = nil) {
    state.withLock { state in
      state.uses += 1
      if let taken {
        // A cleaner of temporary files may have removed the earlier one.
        if let old = state.videos[path] { state.total -= old.bytes }
        state.videos[path] = (taken, state.uses)
      } else {
        state.videos[path]?.used = state.uses
      }
    }
  }

  /// Counts the videos below a directory no more: it is removed.
  func forget(below directory: String) {
    state.withLock { state in
      for (path, video) in state.videos where path.hasPrefix(directory + "/") {
        state.total -= video.bytes
        state.videos[path] = nil
      }
    }
  }

  private func evict() -> Bool {
    let hasRemoved = state.withLock { state in
      let old = state.videos.sorted { $0.value.used < $1.value.used }
      // Readers have opened the files that they read.
      for (path, video) in old.prefix((old.count + Self.share - 1) / Self.share) {
        unlink(path)
        state.total -= video.bytes
        state.videos[path] = nil
      }
      return !old.isEmpty
    }
    return hasRemoved || evictCopy.withLock { $0 }?() ?? false
  }
}
