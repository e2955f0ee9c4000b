// Removes the first segments of a session that goes on, in an order that is right for readers after a crash at any line:
//
// 1. A marker says that the views are to be written; 2. the record says where the session begins; 3. the views are written without the
// segments; 4. their manifests go; 5. their videos go; 6. the record says that nothing is left of them, and the marker goes.
//
// From step 2 on no reader shows them and no publisher adds them to a view again. The next worker writes the views that a crash left
// behind, and the next removal takes the files away.

import Encoding
import FileSystem
import FrameBatches
import Glibc

/// The removal of first segments of one session. Its steps are taken with the session locked.
struct SegmentRemoval {
  /// Maximum number of segments in one step, for which the session is locked.
  static let maximumStep = 500

  let directory: SessionDirectory
  let views: SessionViews
  /// Returns a file name that no other process uses, on the same file system.
  let temporary: () throws -> String
  /// Asked between files.
  let cancellation: Cancellation

  private var output: String { DurableFile.parentDirectory(of: directory.path) }

  /// Removes some first segments of a session, or finishes a removal that was interrupted.
  ///
  /// - Parameter rule: nil to do only that.
  /// - Returns: whether there may be more to remove.
  /// - Throws: ``SessionHeld``; ``Cancelled``.
  func step(_ rule: RemovalRule?, _ removed: inout RemovedSegments) throws -> Bool {
    var (hidden, isDone) = (nil as String?, true)
    _ = try directory.lockedIfFree {
      try finishInterrupted()
      guard let rule else { return }
      let starts = try directory.publishedStarts()
      if try directory.isOver(rule, starts) {
        removed.isEnding = try views.endIfOpen(directory, temporary)
        if removed.isEnding { return }
        if try directory.hasAnnouncedEnd() {
          hidden = try hide(starts, &removed)
          return
        }
        removed.isEnding = true
      }
      isDone = try !removeFirst(rule, of: starts, &removed)
    }
    if let hidden { try removeHidden(hidden) }
    return !isDone
  }

  /// Removes first segments as a rule says. The session stays, with its last segment.
  ///
  /// - Parameter isAllowed: asked with the session locked.
  /// - Returns: whether there may be more to remove.
  /// - Throws: ``SessionHeld``; ``Cancelled``.
  func removeFirst(
    _ rule: RemovalRule, if isAllowed: () throws -> Bool, _ removed: inout RemovedSegments
  ) throws -> Bool {
    var isDone = true
    _ = try directory.lockedIfFree {
      try finishInterrupted()
      guard try isAllowed() else { return }
      isDone = try !removeFirst(rule, of: directory.publishedStarts(), &removed)
    }
    return !isDone
  }

  /// Removes the session as a whole.
  ///
  /// - Parameter isAllowed: asked with the session locked.
  /// - Throws: ``SessionHeld``; ``Cancelled``.
  func removeWhole(if isAllowed: () throws -> Bool, _ removed: inout RemovedSegments) throws {
    var hidden: String?
    _ = try directory.lockedIfFree {
      guard try isAllowed() else { return }
      hidden = try hide(directory.publishedStarts(), &removed)
    }
    if let hidden { try removeHidden(hidden) }
  }

  /// - Returns: the path of the hidden session.
  private func hide(_ starts: [Int64], _ removed: inout RemovedSegments) throws -> String {
    // A damaged manifest goes, too.
    removed.add(starts.compactMap { try? directory.segment($0) })
    removed.isWhole = true
    return try directory.hide()
  }

  private func removeHidden(_ path: String) throws {
    try SessionRemoval.forget(directory.session, output: output)
    try Self.removeTree(path, cancellation)
  }

  /// Removes a hidden session, file by file.
  static func removeTree(_ path: String, _ cancellation: Cancellation) throws {
    for entry in try Directory.entries(ifAt: path) where entry.kind == .file {
      try cancellation.check()
      try DurableFile.removeTree(path + "/" + entry.name)
    }
    try DurableFile.removeTree(path)
  }

  /// Finishes a removal that a crash or a stop interrupted. Call it with the session locked.
  func finishInterrupted() throws {
    guard var retention = try directory.retention(), retention.isRemoving else { return }
    let markers = MarkerFiles(beside: directory)
    _ = try markers.add(directory.session, known: nil)
    try views.update(directory, temporary: temporary())
    try removeFiles(before: retention.startMs, cancellation)
    retention.isRemoving = false
    try directory.write(retention, temporary: temporary())
    // The videos are gone: now the cache is valid.
    try views.update(directory, temporary: temporary())
  }

  /// - Returns: whether there may be more to remove.
  private func removeFirst(
    _ rule: RemovalRule, of starts: [Int64], _ removed: inout RemovedSegments
  ) throws -> Bool {
    let all = try directory.firstSegments(rule, of: starts, limit: Self.maximumStep)
    guard !all.isEmpty, let last = starts.last else { return false }
    let first = try directory.segment(starts[all.count])
    try cancellation.check()
    var cache = views.cache(of: directory)
    if cache?.behind.isEmpty != true {
      try views.update(directory, cache, temporary: temporary())
      cache = views.cache(of: directory)
    }
    let before = try directory.retention()
    var retention = SessionRetention(
      startMs: first.startMs, originMs: before?.originMs ?? all[0].startMs,
      segments: (before?.segments ?? 0) + all.count, isRemoving: true,
      publishedMs: try [before?.publishedMs, directory.lastPublishedMs(of: all.map(\.startMs))].compactMap { $0 }.max())
    let markers = MarkerFiles(beside: directory)
    let wasMarked = markers.isThere(directory.session)
    _ = try markers.add(directory.session, known: nil)
    try directory.write(retention, temporary: temporary())
    let known = try views.removeFirst(
      FirstSegments(removed: all, first: first, last: directory.segment(last), originMs: retention.originMs),
      from: directory, cache, temporary: temporary())
    try removeFiles(before: retention.startMs, .never)
    retention.isRemoving = false
    try directory.write(retention, temporary: temporary())
    removed.add(all)
    if let known {
      known.write(to: directory.path)
      if !wasMarked { try markers.remove(ViewMarker(session: directory.session)) }
    } else {
      try views.update(directory, temporary: temporary())
    }
    return all.count == Self.maximumStep
  }

  /// Removes the files of segments that start before an instant: first all manifests, then all others.
  private func removeFiles(before startMs: Int64, _ cancellation: Cancellation) throws {
    let names = try Self.files(in: directory.path, before: startMs)
    let manifests = names.filter { SegmentName.start(ofManifest: $0) != nil }
    for names in [manifests, names.filter { SegmentName.start(ofManifest: $0) == nil }] {
      for name in names { try remove(directory.path + "/" + name, cancellation) }
      // A crash may have left it, with words of these segments.
      try directory.removeFile(SegmentText.temporary)
      try Directory(opening: directory.path).sync()
    }
    let sprites = directory.path + "/" + ThumbnailPackage.directory
    guard try DurableFile.isDirectory(sprites) else { return }
    for name in try Self.files(in: sprites, before: startMs) { try remove(sprites + "/" + name, cancellation) }
  }

  /// Returns the names of files of segments that start before an instant: `segment-<13 digits>` and an ending.
  private static func files(in path: String, before startMs: Int64) throws -> [String] {
    let prefix = Array("segment-".utf8)
    var names: [String] = []
    try Directory(opening: path, followingLinks: false).visit { name in
      let bytes = UnsafeRawBufferPointer(start: name, count: strlen(name))
      guard bytes.count > prefix.count + 13, bytes.starts(with: prefix),
        bytes[prefix.count + 13] == UInt8(ascii: ".") || bytes[prefix.count + 13] == UInt8(ascii: "-"),
        let start = Int64(String(decoding: bytes[prefix.count..<prefix.count + 13], as: UTF8.self)), start >= 0,
        start < startMs
      else { return }
      names.append(String(cString: name))
    }
    return names
  }

  private func remove(_ path: String, _ cancellation: Cancellation) throws {
    try cancellation.check()
    try check("unlink", path) { unlink(path) == 0 || errno == ENOENT ? 0 : -1 }
  }
}

extension SessionDirectory {
  /// Returns the first segments that a rule removes, but not the last of the session.
  ///
  /// - Parameter starts: of all segments, in order.
  func firstSegments(_ rule: RemovalRule, of starts: [Int64], limit: Int) throws -> [PublishedSegment] {
    var segments: [PublishedSegment] = []
    for start in starts.dropLast().prefix(limit) {
      guard try rule.removes(start, of: self) else { break }
      segments.append(try segment(start))
    }
    return segments
  }

  /// Whether a rule removes the last segment, and nothing was published for long.
  ///
  /// - Parameter starts: of all segments, in order.
  func isOver(_ rule: RemovalRule, _ starts: [Int64]) throws -> Bool {
    guard let last = starts.last, try rule.removes(last, of: self) else { return false }
    if try rule.removesComplete && indexHead()?.isComplete == true { return true }
    return try publication(since: rule.idleSinceMs) == nil
  }
}
