import Encoding
import Films
import FrameBatches
import Sessions

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

  /// Compares the pictures of each segment with the pictures before them. Of a segment, only what `compare` returns is kept.
  ///
  /// - Parameters:
  ///   - pictures: in the order of their captures.
  ///   - compare: takes a picture with its difference from the picture before; nil after a picture of another size, and for the first
  ///     picture of the segments. It is called while a segment is decoded.
  ///   - body: takes the pictures of one segment, with what `compare` returned.
  /// - Throws: ``BadSession`` if a video is missing, damaged, or not the one that its manifest describes; errors of `compare` and `body`.
  func forEachSegment<Found>(
    of pictures: [CapturedPicture], comparing compare: (CapturedPicture, DecodedChange?) throws -> Found,
    _ body: (ArraySlice<CapturedPicture>, [Found]) throws -> Void
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
      let found = try compared(own, after: &before, decodesLast: isNextCompared, compare)
      ready = before.flatMap { isNextCompared ? (number, $0) : nil }
      try body(own, found)
    }
  }

  /// - Parameter before: the last picture of the segment before; becomes the picture that was decoded last.
  private func compared<Found>(
    _ pictures: ArraySlice<CapturedPicture>, after before: inout FrameBuffer?, decodesLast: Bool,
    _ compare: (CapturedPicture, DecodedChange?) throws -> Found
  ) throws -> [Found] {
    guard let first = pictures.first else { return [] }
    let segment = segments[first.segment]
    var wanted = Set(pictures.flatMap { [max(0, $0.frame - 1), $0.frame] })
    if decodesLast { wanted.insert(segment.frames.count - 1) }
    var frames = wanted.sorted()[...]
    var rest = pictures
    var found: [Found] = []
    var shown = before
    try decoder.forEachPicture(
      of: segment, bytes: try directory.video(of: segment), frames: Array(frames), fitting: segment.size
    ) { picture in
      if let frame = frames.popFirst(), let next = rest.first, next.frame == frame {
        rest.removeFirst()
        found.append(try compare(next, shown.flatMap { DecodedChange(of: picture, since: $0) }))
      }
      shown = picture
    }
    before = shown
    return found
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
    var unknown: [Int] = []
    let haveEqualKeys = directory.keyComparison
    for index in pictures.indices where isComparable(pictures[index]) {
      try progress()
      if try opensAsBefore(pictures[index], haveEqualKeys) {
        result[index].change = .estimated(0, isEqual: true)
      } else {
        unknown.append(index)
      }
    }
    var next = unknown[...]
    try forEachSegment(of: unknown.map { pictures[$0] }) { picture, decoded in
      try progress()
      return picture.change(decoded: decoded)
    } _: { _, changes in
      for (index, change) in zip(next, changes) { result[index].change = change }
      next = next.dropFirst(changes.count)
    }
    return result
  }
}

extension PictureWalk {
  /// Whether the manifests do not tell a picture's change, but the decoded pictures do.
  func isComparable(_ picture: CapturedPicture) -> Bool {
    guard picture.change == .unknown else { return false }
    return picture.frame > 0
      || picture.segment > 0 && segments[picture.segment - 1].size == segments[picture.segment].size
  }

  /// Whether a segment opens with the key frame of the one before, which shows nothing else: nothing has to be decoded then.
  private func opensAsBefore(_ picture: CapturedPicture, _ haveEqualKeys: Stills.KeyComparison) throws -> Bool {
    guard picture.frame == 0, picture.segment > 0 else { return false }
    let (segment, before) = (segments[picture.segment], segments[picture.segment - 1])
    return try before.isStill && !before.isImported && !segment.isImported && segment.pictureKind == before.pictureKind
      && haveEqualKeys(before, segment)
  }
}

/// The difference of a decoded picture from the one before, in few bytes.
struct PictureDifference {
  let change: CapturedPicture.Change
  /// Where it differs, in pixels of the capture; nil if that is unknown.
  let regions: [PictureRegion]?

  init(of picture: CapturedPicture, _ decoded: DecodedChange?) {
    change = picture.change(decoded: decoded)
    if case .exact(let count) = change {
      regions = decoded?.regions(ofBlocks: count)
    } else {
      regions = decoded?.regions(ofBlocks: nil)
    }
  }
}

extension CapturedPicture {
  /// Returns the change that is known once the picture and the one before it are decoded.
  func change(decoded: DecodedChange?) -> Change {
    guard change == .unknown, let decoded else { return change }
    return .estimated(decoded.blocks, isEqual: decoded.isEqual)
  }
}
