// Which segments an archive joins to one. Pure.

import Encoding
import FileSystem
import Films
import FrameBatches
import ISOMedia
import JSON
import Sessions
import Showing

/// Segments of a session that an archive has as one.
struct ArchiveGroup {
  /// A segment and its part of the archive's segment.
  struct Part: Sendable {
    let segment: PublishedSegment
    let manifest: JSONValue
    /// Where it ends in the archive: the next segment begins there, or a gap.
    let endMs: Int64
    let seam: Seam
    /// The bytes of its manifest, and the masks that it lists.
    let manifestBytes: Int
    let masks: Int
  }

  /// How the first picture differs from the segment before.
  enum Seam {
    /// The manifest's number counts from the segment before.
    case counted
    /// The key frames of two stills are equal.
    case equal
    case unknown
  }

  /// In order; at least one.
  private(set) var parts: [Part]
  /// The unrecorded time behind it, in milliseconds.
  let gapAfterMs: Int64

  var startMs: Int64 { parts[0].segment.startMs }
  var endMs: Int64 { parts[parts.count - 1].endMs }
  private var bytes: Int { parts.reduce(0) { $0 + $1.segment.bytes } }

  /// Maximum number of frames, which bounds the size of a manifest: ten a second.
  private static let maximumFrames = 6_000
  /// Maximum bytes of the manifests that are joined: the list of the segments comes on top.
  private static let maximumManifestBytes = SegmentManifest.maximumBytes - 1 << 20
}

extension ArchiveGroup {
  /// Groups the segments of a session: up to ten minutes without a gap, with pictures of one kind.
  ///
  /// - Parameter segments: with their manifests, in the order of their starts; none overlaps another one by more than a seam.
  static func all(
    _ segments: [(segment: PublishedSegment, json: JSONValue)],
    haveEqualKeys: Stills.KeyComparison = { _, _ in false }
  ) rethrows -> [ArchiveGroup] {
    var groups: [ArchiveGroup] = []
    for (index, (segment, json)) in segments.enumerated() {
      let next = index + 1 < segments.count ? segments[index + 1].segment : nil
      let gap = next.flatMap { segment.gap(before: $0) }
      let frames = json.object?["frames"]?.array ?? []
      let part = Part(
        segment: segment, manifest: json, endMs: gap?.startMs ?? next?.startMs ?? segment.endMs,
        seam: try seam(of: segment, after: index > 0 ? segments[index - 1].segment : nil, haveEqualKeys),
        manifestBytes: json.bytes().count,
        masks: frames.reduce(0) { $0 + ($1.object?[PaintedMasks.key]?.array?.count ?? 0) })
      let group = ArchiveGroup(
        parts: [part], gapAfterMs: next == nil ? segment.gapAfterMs : gap.map { $0.endMs - $0.startMs } ?? 0)
      if let last = groups.last, last.joins(part) {
        groups[groups.count - 1] = ArchiveGroup(parts: last.parts + [part], gapAfterMs: group.gapAfterMs)
      } else {
        groups.append(group)
      }
    }
    return groups
  }

  private static func seam(
    of segment: PublishedSegment, after before: PublishedSegment?, _ haveEqualKeys: Stills.KeyComparison
  ) rethrows -> Seam {
    guard let before else { return .counted }
    if segment.isNextPart(after: before) { return .counted }
    // Equal pictures have other texts.
    guard !segment.hasOverlayOfInstants else { return .unknown }
    return try Stills.areOne(before, segment, haveEqualKeys) ? .equal : .unknown
  }

  /// Whether a part can follow in the same segment.
  private func joins(_ part: Part) -> Bool {
    let (last, next) = (parts[parts.count - 1], part.segment)
    guard gapAfterMs == 0, endMs == next.startMs, part.endMs - startMs <= ArchiveCoding.segmentMs,
      last.segment.pictureKind == next.pictureKind,
      (last.segment.width, last.segment.height) == (next.width, next.height),
      bytes + next.bytes <= SegmentManifest.maximumVideoBytes,
      parts.reduce(next.frames.count, { $0 + $1.segment.frames.count }) <= Self.maximumFrames,
      parts.reduce(part.manifestBytes, { $0 + $1.manifestBytes }) <= Self.maximumManifestBytes,
      parts.reduce(part.masks, { $0 + $1.masks }) <= PaintedMasks.maximumOfManifest
    else { return false }
    // A picture that continues is that of the last frame.
    if let first = next.frames.first, !first.isCaptured, first.timeMs != last.segment.frames.last?.timeMs {
      return false
    }
    let (one, other) = (parts[0].manifest.object ?? [:], part.manifest.object ?? [:])
    let sizes = (parts.map(\.manifest) + [part.manifest]).compactMap { Self.touchSize(of: $0) }
    return one["timeZone"] == other["timeZone"] && sizes.dropFirst().allSatisfy { $0 == sizes[0] }
  }

  /// The size of the picture in the unit of pointer events.
  private static func touchSize(of manifest: JSONValue) -> [JSONValue]? {
    guard let touches = manifest.object?["touches"]?.object else { return nil }
    return [touches["width"] ?? .null, touches["height"] ?? .null]
  }
}

// MARK: - Frames

extension ArchiveGroup {
  /// A frame of the archive's segment.
  struct ShownFrame {
    let frame: PublishedSegment.Frame
    let json: JSONValue
    /// From the start of the archive's segment, in milliseconds.
    let startMs: Int64
    fileprivate(set) var holdMs: Int64
  }

  /// Returns the frames. A picture that continues in the next segment is one frame here, for its whole time.
  ///
  /// - Throws: ``BadSession`` if a manifest's frames do not agree.
  func frames() throws(BadSession) -> [ShownFrame] {
    var all: [ShownFrame] = []
    for part in parts {
      let texts = part.manifest.object?["frames"]?.array ?? []
      guard texts.count == part.segment.frames.count else { throw BadSession(part.segment.file, "frames are missing") }
      var now = part.segment.startMs
      for (index, (frame, text)) in zip(part.segment.frames, texts).enumerated() {
        let isLast = index + 1 == texts.count
        // The last picture is held until the next segment, or cut short.
        let holdMs = isLast ? part.endMs - now : frame.holdMs
        guard holdMs > 0 else { throw BadSession(part.segment.file, "the next segment begins too early") }
        if !frame.isCaptured, !all.isEmpty {
          all[all.count - 1].holdMs += holdMs
        } else {
          let json = index == 0 && frame.isCaptured ? part.seam.stating(text) : text
          all.append(ShownFrame(frame: frame, json: json, startMs: now - startMs, holdMs: holdMs))
        }
        now += holdMs
      }
    }
    return all
  }
}

// MARK: - Manifest

extension ArchiveGroup {
  /// The member of a manifest that lists the segments that were joined.
  static let key = "archived"

  /// Returns the manifest of the archive's segment, as if a worker had published it: without the facts of its video.
  ///
  /// - Parameters:
  ///   - frames: those of ``frames()``.
  ///   - digest: of the archive, in the place of a batch's.
  ///   - number: of the group, from 1, and the number of all groups.
  func manifest(
    _ frames: [ShownFrame], digest: String, number: Int, of groups: Int
  ) throws(BadSession) -> JSONValue {
    let (first, last) = (parts[0].manifest, parts[parts.count - 1].manifest)
    var members = first.object ?? [:]
    for key in ["touches", SegmentPages.key, SegmentLabels.key, SegmentHealth.key] { members[key] = nil }
    members["refused"] = .array(parts.flatMap { $0.manifest.object?["refused"]?.array ?? [] })
    members["touches"] = try touches()
    members[SegmentPages.key] = pages()
    let labels = parts.flatMap { SegmentLabels.labels(in: $0.manifest) }
    // Those behind a batch may be later than the next one's.
    if !labels.isEmpty { members[SegmentLabels.key] = labels.inOrder.json }
    members[SegmentHealth.key] = SegmentHealth.joined(parts.compactMap(\.segment.health))?.json
    let metadata = parts.map { $0.manifest.object?["metadata"] ?? .null }
    let isOne = metadata.allSatisfy { $0 == metadata[0] }
    for key in ["intervalMs", "final"] { members[key] = last.object?[key] }
    return JSONValue.object(members).setting([
      "batchDigest": .string(digest), "part": .number(number), "parts": .number(groups), "endMs": .number(endMs),
      "durationMs": .number(endMs - startMs), "gapAfterMs": .number(gapAfterMs),
      "frames": .array(frames.map { $0.json.setting(["holdMs": .number($0.holdMs)]) }),
      "encoder": (first.object?["encoder"] ?? .object([:])).setting(["segmentMs": .number(ArchiveCoding.segmentMs)]),
      Self.key: .array(zip(parts, metadata).map { part, metadata in part.json(isOne ? nil : metadata) }),
    ])
  }

  /// The digest of the manifests that it was made from.
  var source: String {
    let digests = parts.map { $0.manifest.object?["manifestSha256"]?.string ?? "" }
    return SHA256.hex(of: Array("archive \(endMs) \(digests.joined(separator: " "))".utf8))
  }

  /// Returns the pointer events, with times from the start of the archive's segment.
  private func touches() throws(BadSession) -> JSONValue? {
    var joined: SegmentTouches?
    for part in parts {
      guard let json = part.manifest.object?["touches"] else { continue }
      let touches: SegmentTouches
      do {
        touches = try SegmentTouches(json, durationMs: part.segment.durationMs)
      } catch {
        throw BadSession(part.segment.file, "its pointer events cannot be read: \(error)")
      }
      // Those behind the cut of a seam stay before the next segment's.
      let events = touches.events.map { $0.moved(byMs: part.segment.startMs - startMs, before: part.endMs - startMs) }
      joined = SegmentTouches(
        width: touches.width, height: touches.height, events: (joined?.events ?? []) + events)
    }
    return joined?.json
  }

  /// Returns the pages, with times from the start of the archive's segment.
  private func pages() -> JSONValue? {
    let pages = parts.flatMap { part in
      (part.manifest.object?[SegmentPages.key]?.array ?? []).compactMap { page -> JSONValue? in
        guard let entry = page.array, entry.count == 2, let offsetMs = entry[0].integer,
          (0..<part.segment.durationMs).contains(offsetMs)
        else { return nil }
        let place = min(part.segment.startMs + offsetMs, part.endMs - 1) - startMs
        return .array([.number(place), entry[1]])
      }
    }
    return pages.isEmpty ? nil : .array(pages)
  }
}

extension ArchiveGroup.Seam {
  /// Returns a part's first frame, with the blocks that changed since the picture before it in the archive.
  fileprivate func stating(_ frame: JSONValue) -> JSONValue {
    guard self != .counted, var members = frame.object else { return frame }
    members[ChangedBlocks.key] = self == .equal ? .number(0) : nil
    return .object(members)
  }
}

extension ArchiveGroup.Part {
  /// - Parameter metadata: nil if it is that of the whole segment.
  fileprivate func json(_ metadata: JSONValue?) -> JSONValue {
    var members: [String: JSONValue] = ["startMs": .number(segment.startMs), "endMs": .number(segment.endMs)]
    for key in ["batch", "batchDigest", "part", "parts", "manifestSha256"] { members[key] = manifest.object?[key] }
    members["metadata"] = metadata
    return .object(members)
  }
}
