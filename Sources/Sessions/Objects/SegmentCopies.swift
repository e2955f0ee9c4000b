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
  /// - Parameter starts: in order.
  func segments(_ starts: [Int64]) throws -> (segments: [PublishedSegment], marks: [Int64: SegmentMarks]) {
    var segments: [PublishedSegment] = []
    var marks: [Int64: SegmentMarks] = [:]
    for start in starts {
      if let own = known[start], let ownMarks = own.marks {
        segments.append(own.segment)
        marks[start] = ownMarks
      } else {
        let (segment, json) = try session.manifest(start)
        segments.append(segment)
        marks[start] = SegmentMarks(json, of: segment)
      }
    }
    return (segments, marks)
  }

  /// Fetches the video of a segment, unless its copy is there.
  func fetchVideo(of segment: PublishedSegment) throws {
    let video = directory.path + "/" + segment.file
    if DurableFile.exists(video) { return }
    if let own = known[segment.startMs]?.video, segment.bytes == (try DurableFile.size(of: own)) {
      guard try DurableFile.link(own, to: video) else { throw DiskError("link", video, code: EEXIST) }
    } else {
      _ = try session.objects.download(session.key(segment.file), to: video, limit: segment.bytes)
    }
  }
}
