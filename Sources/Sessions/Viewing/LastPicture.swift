// The last picture of a session, which lists show. One manifest is read, and the end of a view.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

extension SessionFrame {
  /// The last picture of a session.
  ///
  /// - Returns: nil if the session has no segment.
  /// - Throws: ``BadSession``, ``DamagedOutput`` if the last manifest is not as it was written.
  init?(lastOf directory: SessionDirectory) throws {
    guard let startMs = try directory.lastStart() else { return nil }
    let (segment, json) = try directory.soundManifest(startMs)
    let starts = segment.startsOfFrames.map { segment.startMs + $0 }
    // A frame without a hold is never on screen.
    guard let index = starts.lastIndex(where: { $0 < segment.endMs }) else { return nil }
    let shown = ShownFrame(segment: segment, index: index, shownMs: starts[index]..<segment.endMs)
    self.init(shown, of: directory, json)
  }
}

extension SessionDirectory {
  /// Returns the start of the last segment that `session.ffconcat` lists, at a cost that does not depend on their number; or of all,
  /// if there is no such view. A view may be a moment behind the segments.
  ///
  /// - Returns: nil if there is no segment.
  package func lastStart() throws -> Int64? {
    let directory = try Directory(opening: path, followingLinks: false)
    if let script = try OpenFile(IndexText.scriptFile, in: directory) {
      // An entry has three lines at most.
      var tail = [UInt8](repeating: 0, count: 512)
      let offset = max(0, script.size - tail.count)
      let count = tail.withUnsafeMutableBytes { pread(script.descriptor, $0.baseAddress, $0.count, off_t(offset)) }
      let lines = String(decoding: tail.prefix(max(0, count)), as: UTF8.self).split(separator: "\n")
      if let entry = lines.last(where: { $0.hasPrefix("file ") }),
        let start = SegmentName.start(ofVideo: String(entry.dropFirst(5))),
        directory.stamp(of: SegmentName.manifest(start)) != nil
      {
        return start
      }
    }
    return try publishedStarts().last
  }
}
