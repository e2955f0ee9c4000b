// One update of a session's views, with the session locked: what each view is made of, and how its files are written.

import Encoding
import FileSystem

struct ViewUpdate {
  let directory: SessionDirectory
  /// Views hold back no segment that starts by then, in unix milliseconds.
  let releasedMs: Int64
  /// A file name to write under, on the same file system.
  let temporary: String
  /// Unix milliseconds.
  let nowMs: Int64
  /// Whether live playlists are made as windows, because first segments will be removed.
  var isWindow = false
  /// The chapters of segments by their starts, as far as their manifests have been read.
  var marks: [Int64: SegmentMarks] = [:]
  /// Called between files; throws if the worker has to stop.
  let progress: (_ done: Int, _ total: Int) throws -> Void

  func contents(of name: String) throws -> [UInt8]? {
    try DurableFile.contents(of: directory.path + "/" + name, limit: IndexText.maximumBytes)
  }

  /// Writes a file unless it has these bytes.
  func write(_ name: String, _ bytes: [UInt8]) throws {
    if try DurableFile.contents(of: directory.path + "/" + name, limit: bytes.count) != bytes {
      try replace(name, bytes)
    }
  }

  /// Writes a file.
  func replace(_ name: String, _ bytes: [UInt8]) throws {
    try DurableFile.replace(directory.path + "/" + name, bytes, temporary: temporary)
  }
}
