// Leaves out key frames that a film does not need. Each segment begins with one, also where the screen has not changed: then it is
// the picture on screen. Bytes prove it: the part before begins with the same key frame, and has only repeats behind it. So the film
// shows the same picture at each moment, with or without the key frame. Pure.

import Encoding
import FileSystem
import ISOMedia
import Sessions

/// Replaces key frames of parts that follow one another in a film by repeats.
struct KeyFrameMerger {
  /// A key frame, with all that decides how it is decoded and shown.
  private struct Key {
    let picture: [UInt8]
    let description: VideoDescription

    func isEqual(to other: Key) -> Bool {
      description == other.description && haveEqualBytes(picture[...], other.picture)
    }
  }

  /// Maximum time without a key frame while the picture stays, in ticks.
  private let longest: Int64
  /// The key frame whose picture is on screen; nil if another picture may be.
  private var shown: Key?
  /// The start of that picture, and of the film's last key frame, in ticks.
  private var (since, latest): (Int64, Int64) = (0, 0)
  /// The repeats of the parts so far, as long as their parameter sets are the same.
  private var repeats: (sets: ParameterSets, writer: SkipSliceWriter, repeated: [UInt8])?

  init(_ rule: KeyFrameRule) { longest = MediaTime.ticks(ms: 1_000 * rule.seconds) }

  /// Makes a repeat of the key frame of the film's next part, unless the film needs it. The video of another encoder may stay as it is.
  ///
  /// - Parameters:
  ///   - description: of the video.
  ///   - range: the part in ticks from the film's start.
  /// - Returns: since when the picture is on screen that the part shows from its beginning to its end, in ticks; nil if it changes in
  ///   the part.
  mutating func merge(
    _ samples: inout SegmentSamples, as description: VideoDescription, in range: Range<Int64>
  ) -> Int64? {
    guard let picture = samples.video.first?.data, let repeats = repeats(of: samples) else {
      shown = nil
      return nil
    }
    let key = Key(picture: picture, description: description)
    let isShown = shown?.isEqual(to: key) ?? false
    if !isShown { since = range.lowerBound }
    let isNeeded = !isShown || range.upperBound - latest > longest
    if isNeeded || (try? samples.continuePicture(repeats.writer)) == nil { latest = range.lowerBound }
    let stays = samples.video.dropFirst().allSatisfy { repeats.writer.isRepeat($0.data, as: repeats.repeated) }
    shown = stays ? key : nil
    return stays ? since : nil
  }

  private mutating func repeats(of samples: SegmentSamples) -> (writer: SkipSliceWriter, repeated: [UInt8])? {
    if repeats?.sets != samples.parameterSets {
      repeats = (try? SkipSliceWriter(after: samples.parameterSets)).map {
        (samples.parameterSets, $0, $0.picture(1))
      }
    }
    return repeats.map { ($0.writer, $0.repeated) }
  }
}
