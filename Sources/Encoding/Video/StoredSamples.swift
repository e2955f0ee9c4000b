import CFFmpeg
import FileSystem
import ISOMedia

/// The samples of a video and of its timing track, unchecked, in the order in which they are stored.
package struct StoredSamples {
  /// The tracks to read, by their place in the file.
  package struct Tracks: Equatable {
    package let video: Int
    /// nil for none.
    package let timing: Int?
    /// Whether the file may have more tracks, which are not read.
    package let areSome: Bool

    /// The tracks of a segment, which has no others.
    package static let ofSegment = Tracks(video: 0, timing: 1, areSome: false)

    /// The place of a track in ``StoredSamples``: 0 for the video, 1 for the timing track; nil for another one.
    fileprivate func index(of track: Int) -> Int? { track == video ? 0 : track == timing ? 1 : nil }
  }

  package struct Stored {
    /// 0 for the video, 1 for the timing track.
    package let track: Int
    /// Times are in the track's units.
    package let pts: Int64
    package let duration: Int64
    package let isKey: Bool
    package var data: [UInt8]
  }

  /// The `avcC` or `av1C` of the video; nil if it is neither H.264 nor AV1.
  package let configuration: [UInt8]?
  /// The colours in the video's sample description; nil if it has none.
  package let colour: VideoColour?
  package let samples: [Stored]
}

extension StoredSamples {
  /// - Throws: ``FFmpegError``; ``BadSession`` if the file has other tracks than `tracks`, or several sample descriptions.
  init(of file: any ByteSource, _ name: String, _ tracks: Tracks = .ofSegment) throws {
    let reader = try MP4Reader(file)
    var samples: [Stored] = []
    while let sample = try reader.next() {
      guard let track = tracks.index(of: sample.track) else {
        if tracks.areSome { continue }
        throw BadSession(name, "more than two tracks")
      }
      guard unsafe sample.configuration == nil else {
        throw BadSession(name, "several sample descriptions in one track", advice: "encode it anew with reencode")
      }
      unsafe samples.append(
        Stored(
          track: track, pts: sample.pts, duration: sample.duration, isKey: sample.isKey, data: Array(sample.bytes)))
    }
    self.init(
      configuration: reader.configuration(of: tracks.video), colour: reader.colour(of: tracks.video), samples: samples)
  }
}
