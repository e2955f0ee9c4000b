import FileSystem
import Sessions

/// A directory that sessions are published in. For any thread; one for a directory and process.
///
/// The views of long sessions are written a few times a second at most, so that some may be behind: call ``flushPending(all:)``
/// when ``dueInMs`` is over, and ``close()`` at the end.
public final class OutputDirectory: Sendable {
  let staging: Staging
  let views: SessionViews

  /// Makes what is missing of the path, and a place in `PATH/.staging` for this process.
  ///
  /// - Parameters:
  ///   - hls: whether to keep a live HLS playlist of each session.
  ///   - thumbnails: whether to keep preview thumbnails of each session.
  ///   - sentry: whether to keep Sentry's event beside each manifest.
  /// - Throws: ``DiskError``.
  public init(_ path: String, hls: Bool = false, thumbnails: Bool = false, sentry: Bool = false) throws {
    try DurableFile.makeDirectories(path)
    staging = try Staging(output: path, worker: WorkerID())
    views = SessionViews(hls: hls, thumbnails: thumbnails, sentry: sentry)
  }

  /// The directory's path.
  public var path: String { staging.output }

  /// The room for what can still be written, in bytes.
  public func freeBytes() throws -> Int { try staging.freeBytes() }

  /// The time until a session's views are due, in milliseconds; nil where all tell of all segments.
  public var dueInMs: Int? { views.dueInMs }

  /// Brings the views up to date that are due, and those that a process left behind that is gone.
  ///
  /// - Parameter all: whether those, too, that are not due yet.
  /// - Returns: the updates that failed; they are retried later.
  public func flushPending(all: Bool = false) -> [ViewUpdateFailure] { views.flushPending(staging, all: all) }

  /// Brings all views up to date and removes this process's place. No encoder may publish any more.
  ///
  /// - Returns: the views that could not be; the next worker that adds to the session updates them.
  @discardableResult
  public func close() -> [ViewUpdateFailure] {
    defer { staging.remove() }
    return flushPending(all: true)
  }
}
