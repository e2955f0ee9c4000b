import Encoding
import ISOMedia

/// The samples of a published segment in any coding, read back and checked against its manifest.
package struct SegmentTracks {
  /// The `avcC` or `av1C` of the video; nil if it is neither H.264 nor AV1.
  let configuration: [UInt8]?
  /// The colours in the video's sample description.
  let colour: VideoColour?
  package let video: [Sample]
  let timing: [Sample]

  /// Whether the video is AV1, as in archives of earlier versions. It has a sample for each capture, and no repeats.
  package var isAV1: Bool { configuration.flatMap { AV1Record($0) } != nil }

  /// - Parameter bytes: the file that the manifest describes.
  /// - Throws: ``BadSession`` when the file is not the one the manifest describes.
  package init(of segment: PublishedSegment, bytes: [UInt8], reader: VideoReader) throws {
    func bad(_ cause: String) -> BadSession { BadSession(segment.file, cause) }
    let stored: StoredSamples
    do {
      stored = try reader.samples(of: segment, bytes)
    } catch let error as FFmpegError {
      throw bad("\(error)")
    }
    var tracks: [[Sample]] = [[], []]
    var ends: [Int64] = [0, 0]
    for sample in stored.samples {
      guard tracks.indices.contains(sample.track) else { throw bad("more than two tracks") }
      guard sample.pts == ends[sample.track], (1...Int64(Int32.max)).contains(sample.duration) else {
        throw bad("a sample out of time")
      }
      ends[sample.track] += sample.duration
      tracks[sample.track].append(
        Sample(duration: sample.duration, data: sample.data, isKey: sample.isKey && segment.isImported))
    }
    (configuration, colour, video, timing) = (stored.configuration, stored.colour, tracks[0], tracks[1])
    guard video.count == segment.samples, timing.count == segment.frames.count else { throw bad("samples are missing") }
  }
}
