// All that a player needs of one session, made from its manifests: nothing is written, fragments are made when they are asked
// for.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import ISOMedia
import JSON

/// One session, as it was when it was read.
public final class SessionPlayback: Sendable {
  public let session: SessionID
  /// A digest of everything that can be requested here: another text when any of it is another.
  public let digest: String
  /// For players, as JSON: every segment with its fragment, frames and refused frames; gaps; `problems`.
  public let timeline: [UInt8]
  /// An HLS playlist; segments whose videos are missing are gaps.
  public let playlist: [UInt8]
  /// Problems of the session that hide parts of it.
  package let problems: [Problem]
  /// In the order of their starts.
  package let segments: [PublishedSegment]
  private let directory: SessionDirectory
  private let parts: [HLSSegment]
  /// Frames that could not be decoded.
  private let refused: Int
  /// Indices of ``parts`` whose videos are there.
  private let playable: Set<Int>
  /// Indices of ``parts``, by the fragment's name, and one of each kind by the initialization's.
  private let fragments: [String: Int]
  private let initializations: [String: Int]

  /// The cached parts of a manifest.
  package struct Entry: Sendable {
    /// Of the manifest.
    let stamp: FileStamp?
    package let segment: PublishedSegment
    let codec: String
    /// As they are in the manifest: JSON.
    package let frames: [UInt8]
    package let refused: [UInt8]
    let refusedCount: Int
  }

  /// - Parameters:
  ///   - entries: at least one, in the order of their starts.
  ///   - videos: the files that are there.
  ///   - problems: what is known already.
  package init(of directory: SessionDirectory, _ entries: [Entry], videos: Set<String>, problems known: [Problem]) {
    let segments = entries.map(\.segment)
    let parts = HLSSegment.all(segments)
    let media = parts.map { HLSPlaylist.Entry($0) }
    self.directory = directory
    self.segments = segments
    self.parts = parts
    session = directory.session
    fragments = Dictionary(zip(media.map(\.file), parts.indices)) { first, _ in first }
    initializations = Dictionary(zip(media.map(\.initialization), parts.indices)) { first, _ in first }
    let missing = segments.filter { !videos.contains($0.file) }.map {
      Problem(file: $0.file, what: "missing: restore it, or encode its batch again")
    }
    problems = known + missing + SessionOrder.overlaps(of: segments) + SessionOrder.missingParts(of: segments)
    playable = Set(parts.indices.filter { videos.contains(parts[$0].segment.file) })
    playlist = Array(Self.playlist(of: session, parts, playable) { HLSPlaylist.Entry($0) }.utf8)
    refused = entries.reduce(0) { $0 + $1.refusedCount }
    timeline = Self.timeline(session, entries, parts, media, problems)
    digest = Digest.of(timeline)
  }

  /// How many frames were refused, and how many `problems` there are, as JSON.
  public var faults: [UInt8] {
    JSONValue.object([
      "format": .string("session-faults/1"), "session": .string(session.description),
      "refused": .number(refused), "problems": .number(problems.count),
    ]).bytes() + [UInt8(ascii: "\n")]
  }

  /// The playlist of key frames, `iframes.m3u8`, or the multivariant playlist, `multivariant.m3u8`. The tables of all videos
  /// are read for it.
  ///
  /// - Returns: nil when the name is another one.
  /// - Throws: `DiskError`.
  public func playlist(named name: String) throws -> [UInt8]? {
    guard [HLSViews.keyFramesFile, HLSViews.multivariantFile].contains(name) else { return nil }
    let text = try Self.playlist(of: session, parts, playable) { part in
      do {
        return HLSPlaylist.Entry(part, layout: try part.layout(from: directory))
      } catch is BadSession {
        // A gap, as a segment without a video.
        return nil
      }
    }
    let views = HLSViews(of: Array(text.utf8))
    return name == HLSViews.keyFramesFile ? views.keyFrames : views.multivariant
  }

  /// - Parameter media: of a part; nil where it cannot be played.
  private static func playlist(
    of session: SessionID, _ parts: [HLSSegment], _ playable: Set<Int>,
    media: (HLSSegment) throws -> HLSPlaylist.Entry?
  ) rethrows -> String {
    var playlist = HLSPlaylist(of: session, parts)
    for (index, part) in parts.enumerated() where playable.contains(index) {
      // Segments that overlap are among the problems.
      guard let entry = try media(part), playlist.hasRoom(for: entry) else { continue }
      playlist.append(entry)
    }
    let last = parts[parts.count - 1]
    playlist.end(atMs: last.segment.startMs + last.lengthMs)
    return playlist.text
  }

  /// The fragment of this name, as the timeline and the playlist give it.
  ///
  /// - Returns: nil when there is none of this name.
  /// - Throws: `BadSession` when its segment's video is missing or damaged.
  public func fragment(named name: String) throws -> [UInt8]? {
    if name == HLSPlaylist.gapFile { return MP4Fragment.empty }
    return try fragments[name].map { try parts[$0].files(from: directory).fragment }
  }

  /// The initialization of fragments that name it.
  ///
  /// - Returns: nil when there is none of this name.
  /// - Throws: `BadSession` when no video from which it could be made is whole.
  public func initialization(named name: String) throws -> [UInt8]? {
    guard let first = initializations[name] else { return nil }
    var failure: BadSession?
    for part in parts[first...] where HLSPlaylist.Entry(part).initialization == name {
      do {
        return try part.files(from: directory).initialization
      } catch let bad as BadSession {
        failure = failure ?? bad
      }
    }
    throw failure ?? BadSession(name, "of no segment")
  }

  /// Its first picture as a JPEG that fits 320 × 320 pixels; nil when it is not there any more.
  public func thumbnail() throws -> [UInt8]? {
    try SessionThumbnail.jpeg(
      output: DurableFile.parentDirectory(of: directory.path), session: session, decoders: directory.reader.decoders)
  }

  /// A digest of everything that the first picture depends on.
  public var firstDigest: String { segments[0].sha256 }

  /// The session as one MP4 with its gaps held, in a file without a name that goes with the last who has it.
  ///
  /// - Parameter scratch: a directory with room for it.
  /// - Throws: `BadSession` when a segment is missing or damaged, or the session has changed since; `DiskError`.
  package func film(in scratch: String) throws -> OpenFile? {
    let segments = try directory.soundSegments()
    guard segments == self.segments else {
      throw BadSession(session.description, "changed meanwhile", advice: "reload the page")
    }
    let file = try OutputFile(unnamedIn: scratch)
    _ = try Stitching.write(StitchPlan(segments, gaps: .hold), of: directory, to: file)
    return try file.forReading()
  }

  // MARK: - For players

  private static func timeline(
    _ session: SessionID, _ entries: [Entry], _ parts: [HLSSegment], _ media: [HLSPlaylist.Entry], _ problems: [Problem]
  ) -> [UInt8] {
    let segments = entries.map(\.segment)
    guard let manifest = SessionIndex(session: session, segments: segments) else { return [] }
    let head = JSONValue.object([
      "format": .string("session-timeline/1"), "session": .string(session.description),
      "startMs": .number(manifest.startMs), "endMs": .number(manifest.endMs),
      "durationMs": .number(manifest.durationMs), "complete": .bool(manifest.isComplete),
      "frames": .number(manifest.frames), "bytes": .number(manifest.bytes),
      "gaps": .array(
        manifest.gaps.map { .object(["startMs": .number($0.startMs), "endMs": .number($0.endMs)]) }),
      "problems": .array(problems.map(\.json)),
    ])
    var text = head.bytes().dropLast() + Array(",\"segments\":[".utf8)
    for (index, entry) in entries.enumerated() {
      if index > 0 { text.append(UInt8(ascii: ",")) }
      let segment = entry.segment
      let members = JSONValue.object([
        "file": .string(segment.file), "startMs": .number(segment.startMs), "lengthMs": .number(parts[index].lengthMs),
        "width": .number(segment.width), "height": .number(segment.height),
        "codedWidth": .number(segment.codedWidth), "codedHeight": .number(segment.codedHeight),
        "codec": .string(entry.codec), "fragment": .string(media[index].file),
        "initialization": .string(media[index].initialization),
      ])
      text += members.bytes().dropLast()
      text += Array(",\"frames\":".utf8) + entry.frames + Array(",\"refused\":".utf8) + entry.refused
      text.append(UInt8(ascii: "}"))
    }
    return Array(text) + Array("]}\n".utf8)
  }
}

extension SessionPlayback.Entry {
  /// - Throws: `BadSession`, ``DamagedOutput`` when the manifest is not as it was written.
  package init(_ startMs: Int64, of directory: SessionDirectory, _ stamp: FileStamp?) throws {
    let (segment, json) = try directory.soundManifest(startMs)
    func list(_ key: String, _ shape: ([String: JSONValue]) -> [String: JSONValue]) -> [UInt8] {
      let items = json.object?[key]?.array ?? []
      return JSONValue.array(items.map { .object(shape($0.object ?? [:])) }).bytes()
    }
    func text(_ value: JSONValue?) -> JSONValue { .string(value?.string ?? "") }
    // Only what pages know, in the form that they know.
    self.init(
      stamp: stamp, segment: segment, codec: json.object?["codec"]?.string ?? "",
      frames: list("frames") { frame in
        [
          "timeMs": .number(frame["timeMs"]?.integer ?? 0), "holdMs": .number(frame["holdMs"]?.integer ?? 0),
          "source": text(frame["source"]), "status": text(frame["status"]),
        ]
      },
      refused: list("refused") { ["source": text($0["source"]), "reason": text($0["reason"])] },
      refusedCount: json.object?["refused"]?.array?.count ?? 0)
  }
}
