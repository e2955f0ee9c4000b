import Encoding
import FrameBatches

/// Decodes pictures of a session, each with the picture before it, one segment after the other.
struct PictureWalk {
  let directory: SessionDirectory
  /// In the order of their starts.
  let segments: [PublishedSegment]
  private let decoder: SegmentPictures

  init(_ directory: SessionDirectory, _ segments: [PublishedSegment]) {
    (self.directory, self.segments) = (directory, segments)
    decoder = SegmentPictures(directory.reader, isRGB: false)
  }

  /// Calls a function for the pictures of each segment, with their differences from the pictures before; nil after a picture of another
  /// size, and for the first picture of the segments.
  ///
  /// - Parameters:
  ///   - pictures: in the order of their captures.
  ///   - body: takes pictures of one segment. Its errors are thrown as they are.
  /// - Throws: ``BadSession`` if a video is missing, damaged, or not the one that its manifest describes.
  func forEachSegment(
    of pictures: [CapturedPicture], _ body: (ArraySlice<CapturedPicture>, [DecodedChange?]) throws -> Void
  ) throws {
    // The last picture of a segment that the next one is compared with.
    var ready: (segment: Int, picture: FrameBuffer)?
    var rest = pictures[...]
    while let first = rest.first {
      let number = first.segment
      let own = rest.prefix { $0.segment == number }
      rest = rest.dropFirst(own.count)
      let isNextCompared = rest.first.map { $0.segment == number + 1 && $0.frame == 0 } ?? false
      var before: FrameBuffer?
      if first.frame == 0, number > 0 {
        before = try ready?.segment == number - 1 ? ready?.picture : lastPicture(of: segments[number - 1])
      }
      let changes = try changes(of: own, after: &before, decodesLast: isNextCompared)
      ready = before.flatMap { isNextCompared ? (number, $0) : nil }
      try body(own, changes)
    }
  }

  /// - Parameter before: the last picture of the segment before; becomes the picture that was decoded last.
  private func changes(
    of pictures: ArraySlice<CapturedPicture>, after before: inout FrameBuffer?, decodesLast: Bool
  ) throws -> [DecodedChange?] {
    guard let first = pictures.first else { return [] }
    let segment = segments[first.segment]
    var wanted = Set(pictures.flatMap { [max(0, $0.frame - 1), $0.frame] })
    if decodesLast { wanted.insert(segment.frames.count - 1) }
    let compared = Set(pictures.map(\.frame))
    var frames = wanted.sorted()[...]
    var changes: [DecodedChange?] = []
    var shown = before
    try decoder.forEachPicture(
      of: segment, bytes: try directory.video(of: segment), frames: Array(frames), fitting: segment.size
    ) { picture in
      if let frame = frames.popFirst(), compared.contains(frame) {
        changes.append(shown.flatMap { DecodedChange(of: picture, since: $0) })
      }
      shown = picture
    }
    before = shown
    return changes
  }

  private func lastPicture(of segment: PublishedSegment) throws -> FrameBuffer? {
    try decoder.pictures(
      of: segment, bytes: try directory.video(of: segment), frames: [segment.frames.count - 1], fitting: segment.size
    ).first
  }

  /// Returns pictures with their changes: where the manifests do not tell them, those of the decoded pictures.
  ///
  /// - Parameter progress: called for each picture that is compared; an error that it throws ends the work.
  func withChanges(_ pictures: [CapturedPicture], progress: () throws -> Void) throws -> [CapturedPicture] {
    var result = pictures
    let unknown = pictures.indices.filter { pictures[$0].change == .unknown }
    var next = unknown[...]
    try forEachSegment(of: unknown.map { pictures[$0] }) { _, changes in
      for change in changes {
        if let index = next.popFirst() { result[index].change = result[index].change(decoded: change) }
        try progress()
      }
    }
    return result
  }
}

extension PublishedSegment {
  /// The size of its pictures as captured.
  var size: PixelSize { PixelSize(width: width, height: height) }
}

extension CapturedPicture {
  /// The change that is known once the picture and the one before it are decoded.
  func change(decoded: DecodedChange?) -> Change {
    guard change == .unknown, let decoded else { return change }
    return .estimated(decoded.blocks, isEqual: decoded.isEqual)
  }
}
