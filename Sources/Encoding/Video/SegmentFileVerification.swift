import FileSystem
import ISOMedia
import JSON

/// Compares a segment's video with its manifest: its structure, its times, and whether every picture can be decoded.
enum SegmentFileVerification {
  /// - Parameters:
  ///   - json: the manifest that `segment` is read from.
  ///   - step: called for each sample that is read.
  /// - Returns: a sentence for each difference.
  static func problems(
    _ json: JSONValue, _ segment: PublishedSegment, _ file: any ByteSource, step: () -> Void = {}
  ) throws -> [String] {
    var problems: [String] = []
    if !hasMovieFirst(file) { problems.append("moov is not before mdat") }
    let reader = try MP4Reader(file)
    guard reader.trackCount == 2, let codec = reader.codec else {
      return problems + ["not a video track and a timing track"]
    }
    if codec != json.object?["codec"]?.string { problems.append("another codec than its manifest says") }
    if reader.durationUs != segment.durationMs * 1_000 { problems.append("another duration than its manifest says") }
    let decoder = try unsafe VideoDecoder(reader.parameters(of: 0), limits: .published)
    var starts: [[Int64]] = [[], []]
    var ends: [Int64] = [0, 0]
    var texts: [[UInt8]] = []
    var pictures: [(width: Int, height: Int)] = []
    while let sample = try reader.next() {
      step()
      guard starts.indices.contains(sample.track) else { return problems + ["more than two tracks"] }
      if sample.pts != ends[sample.track] || sample.dts != sample.pts { problems.append("a sample is not contiguous") }
      if sample.track == 0 {
        let isFirst = starts[0].isEmpty
        if isFirst ? !sample.isKey : sample.isKey && !segment.isImported {
          problems.append("the first sample is not the only key frame")
        }
        pictures += try decoder.decode(sample).map { ($0.width, $0.height) }
      } else {
        unsafe texts.append(Array(sample.bytes))
      }
      starts[sample.track].append(sample.pts)
      ends[sample.track] = sample.pts + sample.duration
    }
    pictures += try decoder.decode(nil).map { ($0.width, $0.height) }
    problems += problemsOfSamples(json, segment, starts, ends, texts)
    if pictures.count != segment.samples {
      problems.append("\(pictures.count) pictures can be decoded, of \(segment.samples)")
    }
    if pictures.contains(where: { $0 != (segment.codedWidth, segment.codedHeight) }) {
      problems.append("a picture of another size than its manifest says")
    }
    return problems
  }

  private static func problemsOfSamples(
    _ json: JSONValue, _ segment: PublishedSegment, _ starts: [[Int64]], _ ends: [Int64], _ texts: [[UInt8]]
  ) -> [String] {
    var problems: [String] = []
    let length = MediaTime.ticks(ms: segment.durationMs)
    if ends[0] != length { problems.append("the video lasts \(ends[0]) ticks instead of \(length)") }
    if ends[1] != length { problems.append("the timing track lasts \(ends[1]) ticks instead of \(length)") }
    if starts[0].count != segment.samples {
      problems.append("\(starts[0].count) samples instead of \(segment.samples)")
    }
    let shown = segment.startsOfFrames.map { MediaTime.ticks(ms: $0) }
    if starts[1] != shown { problems.append("the timing track does not list the frames") }
    if !Set(starts[0]).isSuperset(of: shown) { problems.append("a frame has no sample at its instant") }
    let parsed = texts.map { try? JSONParser.parse(Array($0.dropFirst(2))) }
    for (frame, text) in zip(json.object?["frames"]?.array ?? [], parsed)
    where text?.object?["t"] != frame.object?["timeMs"] || text?.object?["f"] != frame.object?["source"] {
      problems.append("the timing track differs from the manifest")
      break
    }
    return problems
  }

  private static func hasMovieFirst(_ file: any ByteSource) -> Bool {
    var first: String?
    // At most two boxes come before it in our files.
    _ = MP4Boxes.read(file, most: 64) { type, _ in
      first = ["moov", "mdat"].contains(type) ? type : nil
      return first == nil
    }
    return first == "moov"
  }
}
