// A session as HLS: a playlist, a fragment a segment, and what is needed to decode them. A view, like session.json: names
// tell what is in a file, and the playlist comes last.

import Glibc

struct HLSPackage {
  /// Where a growing session has its own.
  static let directory = "hls"

  /// The directory it is in; made when it is missing.
  let path: String
  /// Whether the session may grow. What players have seen then stays as it is: fragments that are there are not written
  /// again, and one whose segment is damaged is left out like a gap.
  let isLive: Bool
  /// A path to write files under that nobody else uses, on the same file system.
  let temporary: String

  /// Brings all files up to date.
  ///
  /// - Parameters:
  ///   - segments: at least one, in the order of their starts.
  ///   - progress: called with the segments done and their number; what it throws ends the work.
  /// - Returns: the size of all fragments, in bytes.
  /// - Throws: ``BadSession``, ``DiskError``.
  @discardableResult
  func update(
    _ segments: [PublishedSegment], from session: SessionDirectory, progress: (Int, Int) throws -> Void = { _, _ in }
  ) throws -> Int {
    let parts = HLSPart.all(segments, isLive: isLive)
    // All names before any fragment: small things that stay, made between large ones that go, would keep their memory.
    var media: [HLSPlaylist.Media?] = parts.map { HLSPlaylist.Media($0) }
    try DurableFile.makeDirectories(path)
    let directory = try Directory(opening: path, followingLinks: !isLive)
    try requireOwn(session.session)
    let present = isLive ? Set(try directory.entries().map(\.name)) : []
    var size = 0
    for (index, part) in parts.enumerated() {
      guard let own = media[index] else { continue }
      if try provide(part, as: own, present.contains(own.file), from: session) {
        size += try DurableFile.size(of: path + "/" + own.file)
      } else {
        media[index] = nil
      }
      try progress(index + 1, parts.count)
    }
    let entries = HLSPart.entries(parts, media)
    if entries.contains(where: { $0.media == nil }) { try replace(HLSPlaylist.gapFile, MP4Fragment.empty) }
    try directory.sync()
    let playlist = HLSPlaylist(
      session: session.session, isLive: isLive, isComplete: !isLive || segments.last?.isFinal == true,
      entries: entries)
    try replace(HLSPlaylist.file, Array(playlist.text.utf8))
    try directory.sync()
    return size
  }

  /// Adds segments to a live session's playlist, behind those that it tells of.
  ///
  /// - Parameters:
  ///   - new: in the order of their starts.
  ///   - last: the last segment that it tells of.
  ///   - startMs: the session's.
  /// - Returns: whether that can be done; when not, all has to be made from all segments.
  func extend(
    by new: [PublishedSegment], after last: PublishedSegment, sessionStartMs startMs: Int64,
    from session: SessionDirectory
  ) throws -> Bool {
    guard let there = try DurableFile.contents(of: path + "/" + HLSPlaylist.file, limit: SessionView.mostBytes),
      var text = HLSPlaylistText(of: session.session, continuing: String(decoding: there, as: UTF8.self)),
      text.ends(with: last)
    else { return false }
    var last = last
    for segment in new {
      if let gap = last.gap(before: segment) {
        try replace(HLSPlaylist.gapFile, MP4Fragment.empty)
        text.append(HLSPlaylist.Entry(media: nil, startMs: gap.startMs, lengthMs: gap.endMs - gap.startMs))
      }
      func part(isMixed: Bool) -> HLSPart {
        HLSPart(
          segment: segment, startMs: segment.startMs - startMs, lengthMs: segment.durationMs, gapAfterMs: 0,
          carriesParameterSets: isMixed)
      }
      let part = part(isMixed: text.isMixed(before: HLSPlaylist.Media(part(isMixed: false))))
      let media = HLSPlaylist.Media(part)
      guard text.hasRoom(for: part.shown(by: media)) else { return false }
      let isPlayable = try provide(part, as: media, DurableFile.exists(path + "/" + media.file), from: session)
      if !isPlayable { try replace(HLSPlaylist.gapFile, MP4Fragment.empty) }
      text.append(part.shown(by: isPlayable ? media : nil))
      last = segment
    }
    let directory = try Directory(opening: path, followingLinks: false)
    try directory.sync()
    try replace(HLSPlaylist.file, Array((last.isFinal ? text.ended : text.text).utf8))
    try directory.sync()
    return true
  }

  /// Sees to it that a fragment is there.
  ///
  /// - Returns: whether it is: that of a damaged segment is not, in a live session.
  private func provide(
    _ part: HLSPart, as media: HLSPlaylist.Media, _ isPresent: Bool, from session: SessionDirectory
  ) throws -> Bool {
    do {
      if !isPresent { try write(part, as: media, from: session) }
      return true
    } catch is BadSession where isLive {
      return false
    }
  }

  private func write(_ part: HLSPart, as media: HLSPlaylist.Media, from session: SessionDirectory) throws {
    let (initialization, fragment) = try part.files(from: session)
    if let there = try DurableFile.contents(of: path + "/" + media.initialization, limit: 1 << 20) {
      guard there == initialization else {
        throw BadSession(
          part.segment.file, "other parameter sets than its manifest makes one expect",
          advice: "write into an empty directory, and see what verify says of the session")
      }
    } else {
      try replace(media.initialization, initialization)
    }
    try replace(media.file, fragment)
  }

  /// - Throws: ``BadSession`` when the directory has another session's playlist.
  private func requireOwn(_ session: SessionID) throws {
    guard let there = try DurableFile.contents(of: path + "/" + HLSPlaylist.file, limit: SessionView.mostBytes) else {
      return
    }
    guard HLSPlaylist.session(of: String(decoding: there, as: UTF8.self)) == session.description else {
      throw BadSession(path, "another session's playlist is there", advice: "name another directory")
    }
  }

  private func replace(_ name: String, _ bytes: [UInt8]) throws(DiskError) {
    try DurableFile.replace(path + "/" + name, bytes, temporary: temporary)
  }
}
