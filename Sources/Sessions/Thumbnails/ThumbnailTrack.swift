import Encoding
import FileSystem
import FrameBatches

/// Which part of which sprite is shown when, as WebVTT (W3C, WebVTT: The Web Video Text Tracks Format) with media fragments
/// (`#xywh=`), which players take for previews. Time counts from the session's start; gaps have no cue. Pure.
struct ThumbnailTrack {
  package static let file = "thumbnails.vtt"
  private static let head = Array("WEBVTT\n\n".utf8)

  /// The session's, in unix milliseconds.
  package let startMs: Int64
  package private(set) var text: [UInt8]
  /// The last segment, whose end is open until the next one is known.
  private var last: PublishedSegment?

  init(startMs: Int64) {
    self.startMs = startMs
    text = Self.head
  }

  /// A track that is to go on.
  ///
  /// - Parameter last: the last segment that it tells of.
  /// - Returns: nil when it does not end with that one.
  init?(startMs: Int64, continuing text: [UInt8], after last: PublishedSegment) {
    self.startMs = startMs
    self.text = text
    self.last = last
    let ending = cues(of: last, untilMs: last.endMs)
    guard text.starts(with: Self.head), text.count >= Self.head.count + ending.count,
      text.suffix(ending.count).elementsEqual(ending)
    else { return nil }
  }

  /// Adds a segment that starts after the last one.
  ///
  /// - Parameter isShown: whether there is a sprite of it; else it is left out like a gap.
  package mutating func append(_ segment: PublishedSegment, isShown: Bool) {
    if let last {
      // A seam is closed: the last picture is held longer, or cut short.
      let untilMs = last.gap(before: segment) == nil ? segment.startMs : last.endMs
      if untilMs != last.endMs {
        text.removeLast(cues(of: last, untilMs: last.endMs).count)
        text += cues(of: last, untilMs: untilMs)
      }
    }
    last = isShown ? segment : nil
    if isShown { text += cues(of: segment, untilMs: segment.endMs) }
  }

  /// - Parameter untilMs: when the last picture is not shown any more.
  private func cues(of segment: PublishedSegment, untilMs: Int64) -> [UInt8] {
    let sprite = SegmentSprite(segment)
    var text = ""
    let starts = segment.startsOfFrames
    for (index, offset) in starts.enumerated() where segment.startMs + offset < untilMs {
      let isLast = index + 1 == starts.count
      let endMs = isLast ? untilMs : min(untilMs, segment.startMs + starts[index + 1])
      let (x, y) = sprite.grid.origin(sprite.tile(of: index))
      let (width, height) = (sprite.grid.size.width, sprite.grid.size.height)
      text += "\(SheetText.clock(segment.startMs + offset - startMs)) --> \(SheetText.clock(endMs - startMs))\n"
      text += "\(sprite.file)#xywh=\(x),\(y),\(width),\(height)\n\n"
    }
    return Array(text.utf8)
  }
}

/// The contents of a segment's sprite. Pure.
struct SegmentSprite {
  static let box = PixelSize(width: 160, height: 160)
  /// A segment of more frames has a picture of every second one, or third …
  static let maximumTiles = 100

  /// A name that changes when what is in the file would.
  package let file: String
  /// The frames of which there is a picture, by their places in the segment's list.
  package let frames: [Int]
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

  /// Which picture stands for a frame.
  package func tile(of frame: Int) -> Int { frame / step }
}
