// A pack: segments without a gap between them as one object. Manifests lie behind the fragments, in a box that players skip: lines of JSON,
// each the text of a manifest's file. The session's head names the bytes of each fragment and each manifest.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON

/// A pack that is not published yet.
struct Pack {
  /// The longest one in milliseconds, the size in bytes from which on none gets a further segment, and the maximum number of segments.
  static let (maximumMs, maximumBytes, maximumCount): (Int64, Int, Int) = (600_000, 256 << 20, 256)

  /// The file that has its bytes.
  let path: String
  private(set) var size = 0
  private(set) var sha256 = ""
  private(set) var segments: [Placed] = []

  /// A segment, its place, and what playlists tell of its fragment.
  typealias Placed = (segment: PublishedSegment, place: PackPlace, layout: HLSLayout)

  /// A segment that is not written yet, and its fragment if it lasts for its own time.
  private typealias Next = (source: SegmentSource, fragment: MP4PackFragment)

  var startMs: Int64 { segments[0].place.startMs }

  /// Writes the packs of a batch, one for each time without a gap in which the pictures have one kind.
  ///
  /// - Parameters:
  ///   - sources: all segments, in order.
  ///   - directory: an existing directory for the files.
  ///   - kind: of the session's last pack; nil if there is none.
  /// - Throws: ``SegmentMismatch``; ``DiskError``.
  static func all(
    of sources: [SegmentSource], in directory: String, behind kind: String?, _ cancellation: Cancellation
  ) throws -> [Pack] {
    var (packs, kind, rest) = ([Pack](), kind, sources[...])
    while !rest.isEmpty {
      var pack = Pack(path: "\(directory)/\(packs.count)")
      try pack.write(&rest, behind: kind, cancellation)
      kind = pack.segments[0].place.kind
      packs.append(pack)
    }
    return packs
  }

  private init(path: String) { self.path = path }

  /// Takes the first segments, and writes the file.
  private mutating func write(
    _ rest: inout ArraySlice<SegmentSource>, behind last: String?, _ cancellation: Cancellation
  ) throws {
    let first = rest[rest.startIndex].segment
    let file = try OutputFile(creating: path)
    var (sum, description) = (SHA256(), nil as VideoDescription?)
    var places: [(source: SegmentSource, layout: HLSLayout, fragment: Range<Int>)] = []
    func append(_ bytes: [UInt8]) throws {
      try file.write(bytes, at: size)
      sum.update(bytes)
      size += bytes.count
    }
    func append(_ source: SegmentSource, _ fragment: MP4PackFragment) throws {
      let (start, clockMs) = (size, PackPlace.clockMs(source.segment.startMs))
      try append(
        fragment.bytes(number: UInt32(truncatingIfNeeded: clockMs + 1), start: MediaTime.ticks(ms: clockMs)))
      places.append((source, HLSLayout(of: fragment, at: start..<size), start..<size))
    }
    /// Returns the fragment of the segment that waits if it lasts until another one begins; nil if that needs a pack of its own.
    func lengthened(_ last: Next, before next: PublishedSegment, _ own: VideoDescription) throws -> MP4PackFragment? {
      let segment = last.source.segment
      guard own == description, let lengthMs = PackedSegment.lengthMs(of: segment.entry, before: next.entry),
        next.endMs - first.startMs <= Self.maximumMs, size + segment.bytes < Self.maximumBytes,
        places.count + 1 < Self.maximumCount
      else { return nil }
      if lengthMs == segment.durationMs { return last.fragment }
      let video = try last.source.video.bytes()
      return try? PackedSegment.fragment(of: segment, video, lastingMs: lengthMs, isInBand: own.isInBand).fragment
    }
    // How long the last one lasts is known when the next one is.
    var waiting: Next?
    while let source = rest.first {
      try cancellation.check()
      let (segment, video) = (source.segment, try source.video.bytes())
      var (fragment, own) = try PackedSegment.fragment(of: segment, video, isInBand: description?.isInBand ?? false)
      if description == nil, PackedSegment.isInBand(PackedSegment.kind(of: own), behind: last) {
        (fragment, own) = try PackedSegment.fragment(of: segment, video, isInBand: true)
      }
      if let last = waiting {
        guard let fragment = try lengthened(last, before: segment, own) else { break }
        try append(last.source, fragment)
      } else {
        description = own
        try append(MP4PackFragment.initialization(own))
      }
      waiting = (source, fragment)
      rest = rest.dropFirst()
    }
    if let waiting { try append(waiting.source, waiting.fragment) }
    var (texts, ends) = ([UInt8](), [Int]())
    for (source, _, _) in places {
      texts += try source.text()
      ends.append(texts.count)
    }
    let base = size + MP4PackFragment.closingHead
    try append(MP4PackFragment.closing(texts))
    sha256 = sum.finish()
    let kind = description.map(PackedSegment.kind) ?? ""
    segments = zip(places, zip([0] + ends, ends)).map { placed, range in
      let place = PackPlace(
        startMs: first.startMs, fragment: placed.fragment, manifest: base + range.0..<base + range.1, kind: kind)
      return (placed.source.segment, place, placed.layout)
    }
  }
}

extension Pack {
  /// Reads the manifests of a published pack.
  ///
  /// - Parameter path: its name in messages.
  /// - Throws: ``DamagedOutput``.
  static func segments(
    in bytes: [UInt8], startMs: Int64, path: String
  ) throws(DamagedOutput) -> [Placed] {
    do {
      let file = BoxReader(bytes[...])
      guard let head = try file.all("moof").first?.bytes.startIndex else { throw SegmentMismatch("no fragment") }
      let isInBand = try MP4PackFragment(reading: Array(bytes[(head - 8)..<(file.first("mdat").bytes.endIndex)]))
        .source.isInBand
      let kind = PackedSegment.kind(ofInitialization: bytes[..<(head - 8)], isInBand: isInBand)
      let starts = try file.all("moof").map { $0.bytes.startIndex - 8 }
      let ends = try file.all("mdat").map(\.bytes.endIndex)
      let lines = try file.first("uuid").skipping(MP4PackFragment.closingHead - 8).bytes
        .split(separator: UInt8(ascii: "\n"))
      guard starts.count == lines.count, ends.count == lines.count, !lines.isEmpty,
        zip(starts, ends).allSatisfy({ $0 < $1 })
      else { throw SegmentMismatch("fragments and manifests differ in number") }
      var segments: [Placed] = []
      for (line, (start, end)) in zip(lines, zip(starts, ends)) {
        let segment = try PublishedSegment(JSONParser.parse(Array(line)))
        let fragment = try MP4PackFragment(reading: Array(bytes[start..<end]))
        // With the end of its line.
        let manifest = line.startIndex..<line.endIndex + 1
        let place = PackPlace(startMs: startMs, fragment: start..<end, manifest: manifest, kind: kind)
        segments.append((segment, place, HLSLayout(of: fragment, at: start..<end)))
      }
      guard segments[0].segment.startMs == startMs,
        zip(segments, segments.dropFirst()).allSatisfy({ $0.segment.startMs < $1.segment.startMs })
      else { throw SegmentMismatch("its manifests are those of other segments") }
      return segments
    } catch {
      throw DamagedOutput(path: path, cause: "\(error)")
    }
  }
}
