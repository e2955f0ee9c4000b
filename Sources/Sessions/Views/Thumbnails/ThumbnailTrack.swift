import Encoding
import FileSystem
import FrameBatches

/// Which part of which sprite is shown when, as WebVTT (W3C, WebVTT: The Web Video Text Tracks Format) with media fragments
/// (`#xywh=`), which players take for previews. Time counts from the session's start; gaps have no cue. Pure.
struct ThumbnailTrack {
  static let file = "thumbnails.vtt"
  private static let head = Array("WEBVTT\n\n".utf8)

  /// The session's start, in unix milliseconds.
  private let startMs: Int64
  /// The text up to the last segment, whose cues depend on what follows.
  private var closed: [UInt8]
  /// The last segment; nil if there is none, or it is not shown.
  private var last: PublishedSegment?

  init(startMs: Int64) {
    self.startMs = startMs
    closed = Self.head
  }

  /// Reads a track that grows.
  ///
  /// - Parameter last: the last segment of the track.
  /// - Returns: nil if the track does not end with that segment.
  init?(startMs: Int64, continuing text: [UInt8], after last: PublishedSegment) {
    self.startMs = startMs
    self.last = last
    closed = text
    guard closed.remove(ending: cues(of: last, untilMs: last.endMs)), closed.starts(with: Self.head) else { return nil }
  }

  /// Returns the starts of the segments that a track shows, in order.
  static func starts(in text: [UInt8]) -> [Int64] {
    var starts: [Int64] = []
    for line in text.split(separator: UInt8(ascii: "\n")) where line.starts(with: "segment-".utf8) {
      guard let start = Int64(String(decoding: line.dropFirst(8).prefix(13), as: UTF8.self)) else { continue }
      if start != starts.last { starts.append(start) }
    }
    return starts
  }

  var text: [UInt8] { last.map { closed + cues(of: $0, untilMs: $0.endMs) } ?? closed }

  /// Adds a segment that starts after the last one.
  ///
  /// - Parameter isShown: whether there is a sprite of it; else it is left out like a gap.
  mutating func append(_ segment: PublishedSegment, isShown: Bool) {
    if let last {
      // A seam is closed: the last picture is held longer, or cut short.
      closed += cues(of: last, untilMs: last.gap(before: segment) == nil ? segment.startMs : last.endMs)
    }
    last = isShown ? segment : nil
  }

  /// Returns a track without the cues of the first segments; times count from the first segment that stays.
  ///
  /// - Parameters:
  ///   - startMs: the start of the first segment that stays, in unix milliseconds.
  ///   - sessionStartMs: the start of the session that the times count from.
  /// - Returns: nil if the text is not a track of ours.
  static func removing(before startMs: Int64, sessionStartMs: Int64, in text: [UInt8]) -> [UInt8]? {
    guard text.starts(with: head) else { return nil }
    var result = head
    result.reserveCapacity(text.count)
    var rest = text[head.count...]
    while !rest.isEmpty {
      let lines = rest.split(separator: UInt8(ascii: "\n"), maxSplits: 3, omittingEmptySubsequences: false)
      guard lines.count == 4, lines[2].isEmpty, lines[1].starts(with: "segment-".utf8),
        let start = Int64(String(decoding: lines[1].dropFirst(8).prefix(13), as: UTF8.self)),
        let times = CueTime.times(in: lines[0])
      else { return nil }
      rest = lines[3]
      if start < startMs { continue }
      let shiftMs = startMs - sessionStartMs
      let (from, to) = (times.lowerBound - shiftMs, times.upperBound - shiftMs)
      result += "\(CueTime.clock(from)) --> \(CueTime.clock(to))\n".utf8
      result += lines[1] + Array("\n\n".utf8)
    }
    return result
  }

  /// - Parameter untilMs: the end of the last picture, in unix milliseconds.
  private func cues(of segment: PublishedSegment, untilMs: Int64) -> [UInt8] {
    let sprite = SegmentSprite(segment)
    var text = ""
    let starts = segment.startsOfFrames
    for (index, offset) in starts.enumerated() where segment.startMs + offset < untilMs {
      let isLast = index + 1 == starts.count
      let endMs = isLast ? untilMs : min(untilMs, segment.startMs + starts[index + 1])
      let (x, y) = sprite.grid.origin(sprite.tile(of: index))
      let (width, height) = (sprite.grid.size.width, sprite.grid.size.height)
      text += "\(CueTime.clock(segment.startMs + offset - startMs)) --> \(CueTime.clock(endMs - startMs))\n"
      text += "\(sprite.file)#xywh=\(x),\(y),\(width),\(height)\n\n"
    }
    return Array(text.utf8)
  }
}

/// The contents of a segment's sprite. Pure.
struct SegmentSprite {
  static let box = PixelSize(width: 160, height: 160)
  /// A segment of more frames has a thumbnail of every second frame, or third …
  static let maximumTiles = 100

  /// A name that changes with the file's contents.
  let file: String
  /// The frames that have a thumbnail, as indices of the segment's list.
  let frames: [Int]
  let grid: SpriteGrid
  private let step: Int

  init(_ segment: PublishedSegment) {
    step = (segment.frames.count + Self.maximumTiles - 1) / Self.maximumTiles
    frames = Array(stride(from: 0, to: segment.frames.count, by: step))
    let size = PixelSize(width: segment.width, height: segment.height).fitted(into: Self.box)
    grid = SpriteGrid(size: size, count: frames.count)
    let content = SHA256.hex(of: Array("\(segment.sha256) \(size.width)x\(size.height) \(step)".utf8))
    file = SegmentName.sprite(segment.startMs, digest: String(content.prefix(8)))
  }

  /// Returns the thumbnail that stands for a frame.
  func tile(of frame: Int) -> Int { frame / step }
}
