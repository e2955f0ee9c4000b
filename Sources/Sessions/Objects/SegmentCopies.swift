// Copies of a session's segments in a private directory, from which a worker makes the views of an object store.

import Encoding
import FileSystem
import Glibc

/// A segment that need not be fetched.
struct KnownSegment {
  let segment: PublishedSegment
  /// The file of its video, if it has one.
  let video: String?
  /// nil to read its manifest.
  let marks: SegmentMarks?
  /// Its place in a pack, and the layout of its fragment; nil for a segment with objects of its own.
  let pack: PackPlace?
  let layout: HLSLayout?

  /// - Parameter manifest: of this worker. The one in the store, and the video there, may be those of another worker.
  init(_ placed: PlacedSegment, staged manifest: SegmentManifest) {
    segment = placed.segment
    video = placed.segment.sha256 == manifest.segment.sha256 ? manifest.staged.video.path : nil
    marks = placed.isAdopted ? nil : SegmentMarks(manifest.json, of: placed.segment)
    (pack, layout) = (placed.pack, placed.layout)
  }

  private init(_ known: KnownSegment) {
    (segment, video, marks, pack, layout) = (known.segment, nil, known.marks, known.pack, known.layout)
  }

  /// The segment once the file of its video is gone.
  var withoutVideo: KnownSegment { KnownSegment(self) }

  /// Whether it is the segment of an entry of the index.
  func isSame(as entry: SessionEntry) -> Bool { pack == entry.pack && segment.entry == entry.unpacked }
}

/// A segment in an object store, with its manifest.
struct PlacedSegment {
  let segment: PublishedSegment
  /// Whether the manifest there is another one than that of this worker.
  let isAdopted: Bool
  /// Where it lies in a pack; nil if it has objects of its own.
  var pack: PackPlace?
  /// The layout of its fragment in a pack, as playlists tell it.
  var layout: HLSLayout?

  /// As the index lists it.
  var entry: SessionEntry {
    var entry = segment.entry
    entry.pack = pack
    return entry
  }
}

struct SegmentCopies {
  let session: ObjectSession
  /// The directory of the copies.
  let directory: SessionDirectory
  private let known: [Int64: KnownSegment]

  /// - Parameters:
  ///   - scratch: the parent of the directory, for these copies only.
  ///   - known: segments that need not be fetched, by their starts.
  init(of session: ObjectSession, in scratch: Staging.Scratch, _ known: [Int64: KnownSegment]) {
    (self.session, self.known) = (session, known)
    directory = SessionDirectory(output: scratch.path, session: session.id)
  }

  /// A segment in a pack may have been replaced since it was published.
  private func known(_ entry: SessionEntry) -> KnownSegment? {
    known[entry.startMs].flatMap { $0.pack == nil || $0.isSame(as: entry) ? $0 : nil }
  }

  /// Returns segments with their chapters. Their manifests are fetched.
  ///
  /// - Parameter entries: in order.
  func segments(_ entries: [SessionEntry]) throws -> (segments: [PublishedSegment], marks: [Int64: SegmentMarks]) {
    var segments: [PublishedSegment] = []
    var marks: [Int64: SegmentMarks] = [:]
    for group in groups(of: entries, \.manifest, where: { known($0)?.marks == nil }) {
      if let own = known(group[0]), let ownMarks = own.marks {
        segments.append(own.segment)
        marks[own.segment.startMs] = ownMarks
        continue
      }
      for (segment, json) in try session.manifests(of: group) {
        segments.append(segment)
        marks[segment.startMs] = SegmentMarks(json, of: segment)
      }
    }
    return (segments, marks)
  }

  /// Groups segments that one request can fetch. Others are groups of their own.
  private func groups(
    of entries: [SessionEntry], _ part: KeyPath<PackPlace, Range<Int>>, where isFetched: (SessionEntry) -> Bool
  ) -> [[SessionEntry]] {
    PackPlace.groups(of: entries, part).flatMap { group in
      group.contains(where: { !isFetched($0) }) ? group.map { [$0] } : [group]
    }
  }

  /// Returns the places of segments in packs, by their starts. Fragments of segments that are not known are fetched for their layouts.
  ///
  /// - Parameters:
  ///   - entries: in order, with the first ones of their packs.
  ///   - listed: those whose layouts are wanted.
  func packs(
    of entries: [SessionEntry], layoutsOf listed: ArraySlice<SessionEntry>
  ) throws -> [Int64: HLSPackPart] {
    var layouts: [Int64: HLSLayout] = [:]
    let wanted = listed.filter { $0.pack != nil }
    for group in groups(of: wanted, \.fragment, where: { known($0)?.layout == nil }) {
      if let own = known(group[0]), let layout = own.layout {
        layouts[own.segment.startMs] = layout
        continue
      }
      for (entry, layout) in zip(group, try session.layouts(of: group)) { layouts[entry.startMs] = layout }
    }
    var (parts, initializationBytes): ([Int64: HLSPackPart], [Int64: Int]) = ([:], [:])
    for entry in entries {
      guard let pack = entry.pack else { continue }
      if pack.startMs == entry.startMs { initializationBytes[pack.startMs] = pack.fragment.lowerBound }
      guard let bytes = initializationBytes[pack.startMs] else { continue }
      parts[entry.startMs] = HLSPackPart(place: pack, initializationBytes: bytes, layout: layouts[entry.startMs])
    }
    return parts
  }

  /// Fetches the video of a segment, unless its copy is there.
  func fetchVideo(of segment: SessionEntry) throws {
    let video = directory.path + "/" + segment.file
    if DurableFile.exists(video) { return }
    if let own = known(segment)?.video, segment.bytes == (try DurableFile.size(of: own)) {
      guard try DurableFile.link(own, to: video) else { throw DiskError("link", video, code: EEXIST) }
    } else {
      try session.downloadVideo(segment, to: video)
    }
  }
}
