import FileSystem
import Sessions

/// A directory of sessions. For any thread; one for each directory and process.
///
/// The views of long sessions are written a few times a second at most, so some may be outdated. Call
/// ``flushPending(all:)`` when ``dueInMs`` is over, and ``close()`` at the end.
public final class OutputDirectory: Sendable {
  let staging: Staging
  let views: SessionViews

  /// Creates missing directories of the path, and a directory in `PATH/.staging` for this process.
  ///
  /// - Parameters:
  ///   - path: the directory, where each session becomes a directory of its name.
  ///   - hls: whether to keep a live HLS playlist of each session.
  ///   - thumbnails: whether to keep preview thumbnails of each session.
  ///   - sentry: whether to keep Sentry's event beside each manifest.
  /// - Throws: ``DiskError`` if a directory cannot be made.
  public init(_ path: String, hls: Bool = false, thumbnails: Bool = false, sentry: Bool = false) throws {
    try DurableFile.makeDirectories(path)
    staging = try Staging(output: path, worker: WorkerID())
    views = SessionViews(.on([(.hls, hls), (.thumbnails, thumbnails), (.sentry, sentry)]))
  }

  /// The directory's path.
  public var path: String { staging.output }

  /// Returns the free bytes on the directory's disk.
  ///
  /// - Throws: ``DiskError`` if the disk does not answer.
  public func freeBytes() throws -> Int { try staging.freeBytes() }

  /// The time until a session's views are due, in milliseconds; nil if all views are up to date.
  public var dueInMs: Int? { views.dueInMs }

  /// Updates the views that are due, and those that a dead process left behind.
  ///
  /// - Parameter all: whether to update views that are not due, too.
  /// - Returns: the updates that failed; they are retried later.
  public func flushPending(all: Bool = false) -> [ViewUpdateFailure] { views.flushPending(staging, all: all) }

  /// Updates all views and removes this process's staging directory. No encoder may publish any more.
  ///
  /// - Returns: the updates that failed; the next worker that adds to the session updates the views.
  @discardableResult
  public func close() -> [ViewUpdateFailure] {
    defer { staging.remove() }
    return flushPending(all: true)
  }
}
