import Encoding
import FileSystem
import JSON

/// The manifests of a session in an object store.
extension ObjectSession {
  func segment(_ startMs: Int64) throws -> PublishedSegment { try manifest(startMs).segment }

  /// - Throws: ``DamagedOutput``.
  func manifest(_ startMs: Int64) throws -> (segment: PublishedSegment, json: JSONValue) {
    let key = key(SegmentName.manifest(startMs))
    guard let there = try objects.get(key, limit: 64 << 20) else {
      throw DamagedOutput(path: name + key, cause: "missing")
    }
    return try SegmentManifest.read(there.bytes, of: startMs, path: name + key)
  }
}
