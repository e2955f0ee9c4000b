import Encoding
import FrameBatches

extension SessionPlayback {
  /// A picture on screen: its capture, in unix milliseconds; when it is on screen, in unix milliseconds; and the picture in its
  /// captured size, a JPEG or a PNG. A picture that the next segment continues is on screen for longer.
  public typealias Frame = (captureMs: Int64, shownMs: Range<Int64>, image: [UInt8])

  /// Returns the picture on screen at an instant, for any thread. One segment is read, and decoded up to the picture; the decoder
  /// stays open for pictures behind it.
  ///
  /// - Parameters:
  ///   - unixMs: the instant, in unix milliseconds.
  ///   - isLossless: true for a PNG with the colours of the film, false for a JPEG.
  /// - Returns: nil in a gap, before the session's start, and from its end on.
  /// - Throws: `BadSession` if the segment is missing or damaged, `DiskError`.
  public func frame(at unixMs: Int64, isLossless: Bool = false) throws -> Frame? {
    let shown: ShownFrame
    do {
      shown = try ShownFrame(at: unixMs, in: session, startsMs: startsMs, segment: segment)
    } catch is NothingOnScreen {
      return nil
    }
    let image = try directory.image(of: shown, as: isLossless ? .png : .jpeg)
    return (shown.frame.timeMs, shown.shownMs, image)
  }

  /// Returns a segment from memory, or the reason why its manifest could not be read.
  private func segment(_ index: Int) throws -> PublishedSegment {
    let startMs = startsMs[index]
    // The segments are fewer than the starts if a manifest cannot be read.
    if let known = segments[...min(index, segments.count - 1)].last(where: { $0.startMs <= startMs }),
      known.startMs == startMs
    {
      return known
    }
    do {
      return try directory.soundManifest(startMs).segment
    } catch let damage as DamagedOutput {
      throw BadSession(SegmentName.manifest(startMs), damage.cause)
    }
  }
}
