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

  /// - Parameter manifest: of this worker. The one in the store, and the video there, may be those of another worker.
  init(_ placed: PlacedSegment, staged manifest: SegmentManifest) {
    segment = placed.segment
    video = placed.segment.sha256 == manifest.segment.sha256 ? manifest.staged.video.path : nil
    marks = placed.isAdopted ? nil : SegmentMarks(manifest.json, of: placed.segment)
  }
}

/// A segment in an object store, with its manifest.
struct PlacedSegment {
  let segment: PublishedSegment
  /// Whether the manifest there is another one than that of this worker.
  let isAdopted: Bool
  /// Where it lies in a pack; nil if it has objects of its own.
  var pack: PackPlace?

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

  /// Returns segments with their chapters. Their manifests are fetched.
  ///
  /// - Parameter entries: in order.
  func segments(_ entries: [SessionEntry]) throws -> (segments: [PublishedSegment], marks: [Int64: SegmentMarks]) {
    var segments: [PublishedSegment] = []
    var marks: [Int64: SegmentMarks] = [:]
    for entry in entries {
      if let own = known[entry.startMs], let ownMarks = own.marks {
        segments.append(own.segment)
        marks[entry.startMs] = ownMarks
      } else {
        let (segment, json) = try session.manifest(entry)
        segments.append(segment)
        marks[entry.startMs] = SegmentMarks(json, of: segment)
      }
    }
    return (segments, marks)
  }

  /// Fetches the video of a segment, unless its copy is there.
  func fetchVideo(of segment: SessionEntry) throws {
    let video = directory.path + "/" + segment.file
    if DurableFile.exists(video) { return }
    if let own = known[segment.startMs]?.video, segment.bytes == (try DurableFile.size(of: own)) {
      guard try DurableFile.link(own, to: video) else { throw DiskError("link", video, code: EEXIST) }
    } else {
      try session.downloadVideo(segment, to: video)
    }
  }
}
