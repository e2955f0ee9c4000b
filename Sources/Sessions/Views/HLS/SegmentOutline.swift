// The durations and sizes of a segment's samples, from the tables at the beginning of its file. A playlist of key frames needs no
// more than these.

import Encoding
import FileSystem
import Glibc
import ISOMedia

extension SegmentSamples {
  /// Of `moov`, which has some kilobytes in a segment.
  private static let maximumTableBytes = 8 << 20

  /// Reads durations and sizes. The samples' bytes are zeros.
  ///
  /// - Throws: ``BadSession`` when the video is missing, or its tables are not those of the segment.
  init(outlineOf segment: PublishedSegment, in session: SessionDirectory) throws {
    let directory = try Directory(opening: session.path, followingLinks: false)
    guard let file = try OpenFile(segment.file, in: directory), file.size == segment.bytes,
      file.size <= SegmentManifest.maximumVideoBytes
    else {
      throw BadSession(segment.file, "missing, or not a plain file of its size")
    }
    do {
      let source = FileBytes(file)
      // `moov` is the second box.
      let start = try BoxReader(source.bytes(at: 0, 8)[...]).number(at: 0)
      let size = try BoxReader(source.bytes(at: start, 8)[...]).number(at: 0)
      guard (8...Self.maximumTableBytes).contains(size) else { throw SegmentMismatch("no movie") }
      let movie = try BoxReader(source.bytes(at: start, size)[...]).first("moov")
      let tracks = try movie.all("trak")
      guard tracks.count == 2 else { throw SegmentMismatch("not two tracks") }
      let table = try tracks[0].table
      let entries = try table.first("stsd").skipping(8)
      guard try entries.all("av01").isEmpty else { throw Self.av1(segment.file) }
      let entry = try entries.first("avc1").skipping(78)
      guard let sets = ParameterSets(configuration: try entry.first("avcC").bytes) else {
        throw SegmentMismatch("no parameter sets")
      }
      let colours = try entry.all("colr")
      self.init(
        parameterSets: sets, colour: colours.isEmpty ? nil : try colours[0].colour,
        video: try table.samples(segment.samples, in: segment.bytes),
        timing: try tracks[1].table.samples(segment.frames.count, in: segment.bytes))
    } catch let mismatch as SegmentMismatch {
      throw BadSession(segment.file, "its tables are not those of a segment: \(mismatch)")
    }
  }
}

extension BoxReader {
  /// The content of `colr`, behind its type (ISO/IEC 14496-12, 12.1.5).
  fileprivate var colour: VideoColour {
    get throws(SegmentMismatch) {
      try VideoColour(
        primaries: number(at: 4, bytes: 2), transfer: number(at: 6, bytes: 2), matrix: number(at: 8, bytes: 2),
        isFullRange: number(at: 10, bytes: 1) & 0x80 != 0)
    }
  }

  /// The sample tables of a track.
  fileprivate var table: BoxReader {
    get throws(SegmentMismatch) { try first("mdia").first("minf").first("stbl") }
  }

  /// Returns the samples of a track by its tables.
  ///
  /// - Parameters:
  ///   - count: the number of samples in the manifest.
  ///   - bytes: the size of the file.
  fileprivate func samples(_ count: Int, in bytes: Int) throws(SegmentMismatch) -> [Sample] {
    let sizes = try first("stsz").numbers(at: 8)
    let runs = try first("stts").numbers(columns: 2)
    let counts = stride(from: 0, to: runs.count, by: 2)
    guard sizes.count == count, sizes.allSatisfy({ $0 <= bytes }), sizes.reduce(0, +) <= bytes,
      counts.reduce(0, { $0 + runs[$1] }) == count
    else { throw SegmentMismatch("other samples than its manifest says") }
    let durations = counts.flatMap { repeatElement(Int64(runs[$0 + 1]), count: runs[$0]) }
    guard durations.allSatisfy({ (1...Int64(Int32.max)).contains($0) }) else {
      throw SegmentMismatch("a sample without a duration")
    }
    return zip(durations, sizes).map { Sample(duration: $0, data: [UInt8](repeating: 0, count: $1)) }
  }
}
