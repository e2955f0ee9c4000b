// The timeline, playlists and fragments of one session for players, made from its manifests. Nothing is written. Fragments are made
// on request.

import Encoding
import FileSystem
import Films
import FrameBatches
import Glibc
import ISOMedia
import JSON
import Sessions

/// One session as it was when it was read.
public final class SessionPlayback: Sendable {
  /// The session's name.
  public let session: SessionID
  /// A digest of everything that can be requested here.
  public let digest: String
  /// JSON for players: the segments with their fragments, frames and refused frames; gaps; `problems`.
  public let timeline: [UInt8]
  /// An HLS playlist; segments whose videos are missing are gaps. That of a session that goes on has no end, lists a batch's last
  /// segment when the next batch or some time ends it, and is empty before its first entry.
  public let playlist: [UInt8]
  /// Problems of the session that hide parts of it.
  package let problems: [Problem]
  /// In the order of their starts.
  package let segments: [PublishedSegment]
  /// The starts of all segments, in order, with those whose manifests cannot be read.
  let startsMs: [Int64]
  let directory: SessionDirectory
  private let parts: [HLSSegment]
  /// The chapters of each part.
  private let marks: [SegmentMarks]
  /// The segments that the playlist lists.
  let listing: LiveListing
  /// The record of removed first segments.
  private let retention: SessionRetention?
  /// The number of frames that could not be decoded.
  private let refused: Int
  /// The parts by the names of their fragments, in the timeline and in the playlist.
  private let fragments: [String: HLSSegment]
  /// The captions of the playlist's entries by the names of their files.
  private let captions: [String: HLSCaptionSegment]
  /// The first part of each kind by its initialization's name.
  private let initializations: [String: HLSSegment]

  /// - Parameters:
  ///   - entries: at least one, in the order of their starts.
  ///   - videos: the starts of the existing files.
  ///   - hasEnded: whether its end is recorded.
  ///   - known: problems of the manifests.
  ///   - retention: the record of removed first segments.
  ///   - nowMs: unix milliseconds.
  init(
    of directory: SessionDirectory, _ entries: [Entry], videos: Set<Int64>, hasEnded: Bool, problems known: [Problem],
    _ retention: SessionRetention?, nowMs: Int64
  ) {
    let segments = entries.map(\.segment)
    let parts = HLSSegment.all(segments)
    let media = HLSPlaylist.Entry.all(parts)
    self.directory = directory
    self.segments = segments
    startsMs = (segments.map(\.startMs) + known.compactMap { SegmentName.start(ofManifest: $0.file) }).sorted()
    self.parts = parts
    marks = entries.map(\.marks)
    self.retention = retention
    session = directory.session
    listing = LiveListing(
      segments, publishedMs: entries.map { ($0.stamp?.modified ?? 0) / 1_000_000 },
      hasEnded: hasEnded || segments.contains(where: \.isFinal), nowMs: nowMs)
    let missing = segments.filter { !videos.contains($0.startMs) }.map {
      Problem(file: $0.file, what: "missing: restore it, or encode its batch again")
    }
    problems =
      known + missing + SessionOrder.overlaps(of: segments)
      + SessionOrder.missingParts(of: segments, isCut: retention != nil)
    var fragments = Dictionary(zip(media.map(\.file), parts)) { first, _ in first }
    var initializations = Dictionary(zip(media.map(\.initialization), parts)) { first, _ in first }
    // Pages may have the timeline from before the next segment.
    for (part, entry) in zip(parts, media) where part.lengthMs != part.segment.durationMs {
      let own = part.withOwnEnd
      fragments[HLSPlaylist.Entry(own, initialization: entry.initialization).file] = own
    }
    let listed = Self.playlist(of: session, parts, marks, listing, retention) { part, entry in
      guard videos.contains(part.segment.startMs) else { return nil }
      fragments[entry.file] = part
      initializations[entry.initialization] = initializations[entry.initialization] ?? part
      return entry
    }
    playlist = Array((listed?.text ?? "").utf8)
    captions = listed?.captionSegments ?? [:]
    (self.fragments, self.initializations) = (fragments, initializations)
    refused = entries.reduce(0) { $0 + $1.refusedCount }
    timeline = Self.timeline(session, entries, parts, media, problems, hasEnded: hasEnded)
    // Equal videos may have other notes, pages, presses and masks.
    var sum = SHA256()
    sum.update(timeline)
    sum.update(playlist)
    sum.update(entries.map(\.identity).joined(separator: "\n"))
    digest = String(sum.finish().prefix(32))
  }

  /// The numbers of refused frames and of `problems`, as JSON.
  public var faults: [UInt8] {
    JSONValue.object([
      "format": .string("session-faults/1"), "session": .string(session.description),
      "refused": .number(refused), "problems": .number(problems.count),
    ]).bytes() + [UInt8(ascii: "\n")]
  }

  /// The answer in place of ``faults`` if nobody has read the session.
  package static func unreadFaults(of session: SessionID) -> [UInt8] {
    JSONValue.object([
      "format": .string("session-faults/1"), "session": .string(session.description), "unread": .bool(true),
    ]).bytes() + [UInt8(ascii: "\n")]
  }

  /// Returns the playlist of key frames, `iframes.m3u8`, the multivariant playlist, `multivariant.m3u8`, or that of captions,
  /// `captions.m3u8`. The first two read the tables of all videos.
  ///
  /// - Parameter name: of the playlist.
  /// - Returns: nil for any other name, and for captions if there are none; empty as long as ``playlist`` is.
  /// - Throws: `DiskError`.
  public func playlist(named name: String) throws -> [UInt8]? { try playlist(named: name) {} }

  /// Like ``playlist(named:)``.
  ///
  /// - Parameter progress: called for each video; an error that it throws ends the work.
  package func playlist(named name: String, progress: () throws -> Void) throws -> [UInt8]? {
    if name == HLSCaptions.file { return HLSViews(of: playlist).captions }
    guard [HLSViews.keyFramesFile, HLSViews.multivariantFile].contains(name) else { return nil }
    if playlist.isEmpty { return [] }
    let text = try Self.playlist(of: session, parts, marks, listing, retention) { part, entry in
      try progress()
      do {
        var entry = entry
        entry.layout = try part.layout(from: directory)
        return entry
      } catch is BadSession {
        return nil
      }
    }
    let views = HLSViews(of: Array((text?.text ?? "").utf8))
    return name == HLSViews.keyFramesFile ? views.keyFrames : views.multivariant
  }

  /// Returns the captions of an entry of ``playlist`` by the name of their file; nil if there are none.
  ///
  /// - Parameter name: any text, such as a part of a request's path.
  public func captions(named name: String) -> [UInt8]? {
    if name == HLSCaptionSegment.emptyFile, !captions.isEmpty { return HLSCaptionSegment.none.bytes }
    return captions[name]?.bytes
  }

  /// - Parameter place: returns the entry of a fragment; nil if its video is damaged.
  /// - Returns: nil if it would be empty.
  private static func playlist(
    of session: SessionID, _ parts: [HLSSegment], _ marks: [SegmentMarks], _ listing: LiveListing,
    _ retention: SessionRetention?, place: (HLSSegment, HLSPlaylist.Entry) throws -> HLSPlaylist.Entry?
  ) rethrows -> HLSPlaylist? {
    let segments = parts.map(\.segment)
    let isWhole = segments.areOneFinalBatch
    var playlist = HLSPlaylist(of: session, parts)
    if !isWhole {
      playlist = HLSPlaylist(
        of: session, retention == nil ? .live : .window, startMs: segments[0].startMs,
        maximumMs: HLSPlaylist.liveMaximumMs(of: segments),
        sequence: HLSPlaylist.Sequence(media: Int64(retention?.segments ?? 0)))
    }
    try playlist.list(
      segments[..<listing.count], sessionStartMs: retention?.originMs ?? segments[0].startMs,
      next: { index in
        index + 1 == segments.count || !isWhole && listing.ownEnds.contains(index) ? nil : segments[index + 1]
      }, marks: { marks[$0] }, refuse: { _ in }, place: place)
    if listing.hasEnded {
      let last = parts[parts.count - 1]
      playlist.end(atMs: last.segment.startMs + last.lengthMs)
    } else if !playlist.hasEntries {
      return nil
    }
    return playlist
  }

  /// Returns a fragment by its name in the timeline and the playlist; nil if there is none.
  ///
  /// - Parameter name: any text, such as a part of a request's path.
  /// - Throws: `BadSession` if its segment's video is missing or damaged.
  public func fragment(named name: String) throws -> [UInt8]? {
    if name == HLSPlaylist.gapFile { return MP4Fragment.empty }
    return try fragments[name].map { try $0.files(from: directory).fragment }
  }

  /// Returns an initialization by its name; nil if there is none.
  ///
  /// - Parameter name: any text, such as a part of a request's path.
  /// - Throws: `BadSession` if all videos from which it could be made are damaged.
  public func initialization(named name: String) throws -> [UInt8]? {
    guard let first = initializations[name] else { return nil }
    var failure: BadSession?
    for var part in parts where part.segment.startMs >= first.segment.startMs && part.kind == first.kind {
      part.carriesParameterSets = first.carriesParameterSets
      do {
        return try part.files(from: directory).initialization
      } catch let bad as BadSession {
        failure = failure ?? bad
      }
    }
    throw failure ?? BadSession(name, "of no segment")
  }

  /// Returns its first picture as a JPEG that fits 320 × 320 pixels; nil if the session was removed.
  ///
  /// - Throws: `BadSession` if the first segment is missing or damaged; `DiskError`.
  public func thumbnail() throws -> [UInt8]? {
    try SessionThumbnail.jpeg(of: directory)
  }

  /// A digest of the first segment.
  public var firstDigest: String { segments[0].sha256 }

  /// Returns the part of the session that a clip shows, in unix milliseconds.
  ///
  /// - Throws: ``BadClip`` if it shows nothing.
  package func range(of clip: Clip) throws(BadClip) -> Range<Int64> {
    let (first, last) = (segments[0], segments[segments.count - 1])
    return try clip.range(
      in: first.startMs..<max(first.startMs + 1, last.endMs + last.gapAfterMs), of: session)
  }

  /// The size of the segments that a part of the session is made of, in bytes: about that of its film.
  package func bytes(in range: Range<Int64>) -> Int {
    segments.reduce(0) { sum, segment in
      let endMs = max(segment.startMs, segment.endMs) + segment.gapAfterMs
      let isIn = segment.startMs < range.upperBound && endMs > range.lowerBound
      return isIn ? sum + min(segment.bytes, SegmentManifest.maximumVideoBytes) : sum
    }
  }

  // MARK: - For players

  private static func timeline(
    _ session: SessionID, _ entries: [Entry], _ parts: [HLSSegment], _ media: [HLSPlaylist.Entry],
    _ problems: [Problem], hasEnded: Bool
  ) -> [UInt8] {
    let segments = entries.map(\.segment)
    guard let index = SessionIndex(session: session, segments: segments, hasEnded: hasEnded) else {
      return []
    }
    let health: [String: JSONValue] = index.health.map { [SegmentHealth.key: $0.described] } ?? [:]
    let head = JSONValue.object([
      "format": .string("session-timeline/1"), "session": .string(session.description),
      "startMs": .number(index.startMs), "endMs": .number(index.endMs), "durationMs": .number(index.durationMs),
      "complete": .bool(index.isComplete), "frames": .number(index.frames), "bytes": .number(index.bytes),
      "gaps": .array(index.gaps.map(\.json)), "problems": .array(problems.map(\.json)),
    ]).setting(health)
    var text = head.bytes()
    text.removeLast()
    // A segment has some 400 bytes beside its lists.
    text.reserveCapacity(entries.reduce(text.count) { $0 + 500 + $1.listBytes })
    text += ",\"segments\":[".utf8
    for (number, entry) in entries.enumerated() {
      if number > 0 { text.append(UInt8(ascii: ",")) }
      entry.append(to: &text, lengthMs: parts[number].lengthMs, media[number])
    }
    text += "]}\n".utf8
    return text
  }
}

// MARK: - Pictures

extension SessionPlayback {
  /// A picture on screen: its capture, in unix milliseconds; when it is on screen, in unix milliseconds; and the picture in its
  /// captured size, a JPEG or a PNG. A picture that the next segment continues is on screen for longer.
  public typealias Frame = (captureMs: Int64, shownMs: Range<Int64>, image: [UInt8])

  /// Returns the picture on screen at an instant, for any thread. One segment is read, and decoded up to the picture; the decoder
  /// stays open for pictures behind it.
  ///
  /// - Parameters:
  ///   - unixMs: the instant, in unix milliseconds.
  ///   - isLossless: true for a PNG with the colours of the film, false for a JPEG.
  /// - Returns: nil in a gap, before the session's start, and from its end on.
  /// - Throws: `BadSession` if the segment is missing or damaged, `DiskError`.
  public func frame(at unixMs: Int64, isLossless: Bool = false) throws -> Frame? {
    let shown: ShownFrame
    do {
      shown = try ShownFrame(at: unixMs, in: session, startsMs: startsMs, segment: segment)
    } catch is NothingOnScreen {
      return nil
    }
    let image = try directory.image(of: shown, as: isLossless ? .png : .jpeg)
    return (shown.frame.timeMs, shown.shownMs, image)
  }

  /// Returns a segment from memory, or the reason why its manifest could not be read.
  private func segment(_ index: Int) throws -> PublishedSegment {
    let startMs = startsMs[index]
    // The segments are fewer than the starts if a manifest cannot be read.
    if let known = segments[...min(index, segments.count - 1)].last(where: { $0.startMs <= startMs }),
      known.startMs == startMs
    {
      return known
    }
    do {
      return try directory.soundManifest(startMs).segment
    } catch let damage as DamagedOutput {
      throw BadSession(SegmentName.manifest(startMs), damage.cause)
    }
  }
}

// MARK: - Films

extension SessionPlayback {
  /// Returns the map of the session's film, or of that of a part, with its gaps held.
  ///
  /// - Parameter progress: called for each manifest; an error that it throws ends the work.
  /// - Throws: ``BadClip`` if it shows nothing; `BadSession` if the session has changed since; `DiskError`.
  package func map(of clip: Clip, progress: () throws -> Void = {}) throws -> NamedMap {
    try plan(of: clip, as: .mp4, progress: progress).namedMap(of: session.description)
  }

  private func plan(of clip: Clip, as form: FilmForm, progress: () throws -> Void) throws -> StitchPlan {
    let part = try directory.segments(of: clip, progress: progress)
    let known = segments.firstIndex { $0.startMs == part.segments[0].startMs } ?? 0
    guard part.segments == Array(segments[known...].prefix(part.segments.count)), try range(of: clip) == part.range
    else {
      throw BadSession(session.description, "changed meanwhile", advice: "reload the page")
    }
    let haveEqualKeys = directory.keyComparison
    return try StitchPlan(
      part, of: clip, gaps: .hold, as: form, in: session,
      haveEqualKeys: { one, other in
        try progress()
        return try haveEqualKeys(one, other)
      })
  }

  /// Writes the session, or a part of it, as one film with its gaps held, to a file without a name.
  ///
  /// - Parameters:
  ///   - animation: the format and the maximum of the longer side in pixels; nil for an MP4.
  ///   - scratch: a directory with room for it.
  ///   - progress: called for each manifest, and for each segment or picture; an error that it throws ends the work.
  /// - Throws: ``BadClip`` if it shows nothing; ``AnimationRefusal``, ``MissingEncoder``; `BadSession` if a segment is missing or
  ///   damaged, or the session has changed since; `DiskError`.
  package func film(
    of clip: Clip = .whole, as animation: (format: AnimationFormat, maxSide: Int)? = nil, in scratch: String,
    progress: () throws -> Void = {}
  ) throws -> OpenFile {
    let form = animation.map { FilmForm.animation($0.format, maxSide: $0.maxSide) } ?? .mp4
    let plan = try plan(of: clip, as: form, progress: progress)
    let file = try OutputFile(unnamedIn: scratch)
    if let (format, maxSide) = animation {
      _ = try Stitching.write(plan, of: directory, as: format, maxSide: maxSide, to: file) { _, _ in try progress() }
    } else {
      _ = try Stitching.write(plan, of: directory, to: file) { _, _ in try progress() }
    }
    guard let film = try file.forReading() else { throw DiskError("read", scratch, code: EINVAL) }
    return film
  }
}
