import Encoding
import FileSystem

/// Videos of a session that are not in its directory, and faults of its manifests that the directory does not show. For any thread.
package protocol VideoFiles: Sendable {
  /// The starts of the segments that have a video, in unix milliseconds.
  var starts: Set<Int64> { get }
  /// Opens a video.
  ///
  /// - Returns: nil if there is none.
  /// - Throws: `BadSession` if it is not the one that the manifest describes; an error of its place.
  func file(of segment: PublishedSegment) throws -> OpenFile?
  /// - Throws: `BadSession` if the directory has only an empty file in the place of a segment's manifest.
  func requireManifest(_ startMs: Int64) throws
}
