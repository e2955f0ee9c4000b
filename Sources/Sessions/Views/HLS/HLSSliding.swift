// The live package of a session whose first segments are removed.

import Encoding
import FileSystem
import FrameBatches

extension HLSPackage {
  /// Takes the first segments out of the playlists. Their fragments stay for a while, like all files that a playlist no longer names.
  ///
  /// - Parameters:
  ///   - startMs: the start of the first segment that stays, in unix milliseconds.
  ///   - originMs: the instant that the times in fragments count from.
  /// - Returns: false if no listed segment stays. Then the playlists are unchanged.
  func slide(to startMs: Int64, originMs: Int64, in session: SessionDirectory) throws -> Bool {
    guard let there = try text(), let slid = HLSPlaylist.sliding(there, to: startMs) else { return true }
    guard slid.hasSegments else { return false }
    let graceMs = SupersededFiles.graceMs(after: there, durationMs: startMs - originMs)
    // A file that the playlist still names is not removed.
    try SupersededLists(output: DurableFile.parentDirectory(of: session.path), temporary: temporary).replace(
      slid.files, with: [], among: [], of: session.session, dueMs: nowMs + graceMs)
    try replace(HLSViews(of: slid.text), slid.text, in: Directory(opening: path, followingLinks: false))
    return true
  }

  /// Returns an empty playlist for all segments of a session, which continues the numbers of the playlist that is there.
  ///
  /// - Parameter window: whether it is a sliding window, from which first segments are or will be removed.
  func emptyPlaylist(
    for segments: [PublishedSegment], of session: SessionID, isWindow window: Bool
  ) throws -> HLSPlaylist {
    let first = segments[0]
    // The target depends on the first segment only, so it never changes: the longest segment that its interval allows, and a seam.
    let maximumMs = first.fullMs + first.intervalMs
    guard window else { return HLSPlaylist(of: session, .live, startMs: first.startMs, maximumMs: maximumMs) }
    let there = try text() ?? []
    let isContinued = HLSPlaylist.starts(in: there).first == first.startMs
    return HLSPlaylist(
      of: session, .window, startMs: first.startMs,
      maximumMs: HLSPlaylist.target(of: there).map { $0 * 1_000 } ?? maximumMs,
      sequence: isContinued ? HLSPlaylist.sequence(of: there) : HLSPlaylist.sequence(behind: there))
  }
}
