// The bytes that a session takes, by what becomes of them when segments go. A directory counts blocks of the disk, a store the sizes of
// objects. Pure.

import Encoding

/// The bytes that the files of one session take.
struct SessionBytes: Sendable, Equatable {
  /// The kind of a file.
  enum Kind: Int, CaseIterable {
    case video, described, shared, live, superseded

    /// The kind of a file of a session, or of its thumbnails.
    init(ofFile name: String) {
      self = SegmentName.start(ofVideo: name) != nil ? .video : name.hasPrefix("segment-") ? .described : .shared
    }
  }

  /// The videos of its segments, and their number.
  var (videos, segments) = (0, 0)
  /// The files of `hls/`, but for superseded ones.
  var live = 0
  /// Manifests, words, events and thumbnails of the segments.
  var described = 0
  /// The files of the session as a whole, also those that were made at its end.
  var shared = 0
  /// The files of `hls/` that the playlist does not name any more. They go some minutes later.
  var superseded = 0

  /// The bytes that stay until segments go.
  var lasting: Int { videos + live + described + shared }
  var all: Int { lasting + superseded }

  /// Returns how many bytes go with a segment, or a little later: its fragment has about the size of its video, and its other files
  /// have that of other segments.
  ///
  /// - Parameter video: the size of its video.
  func ofSegment(video: Int) -> Int {
    let fragment = videos == 0 ? 0 : Self.whole(Double(video) * Double(live) / Double(videos))
    return video + fragment + described / max(1, segments)
  }

  /// Returns an estimate for other segments: fragments grow with the videos, all other files with the number of segments.
  ///
  /// - Parameters:
  ///   - videos: the bytes of their videos.
  ///   - segments: their number.
  func scaled(toVideos videos: Int, segments: Int) -> SessionBytes {
    func scaled(_ bytes: Int, _ wanted: Int, _ own: Int) -> Int {
      own == 0 ? 0 : Self.whole(Double(bytes) * Double(wanted) / Double(own))
    }
    var bytes = SessionBytes()
    (bytes.videos, bytes.segments) = (videos, segments)
    bytes.live = scaled(live, videos, self.videos)
    bytes.described = scaled(described, segments, self.segments)
    bytes.shared = scaled(shared, segments, self.segments)
    return bytes
  }

  static func += (sum: inout SessionBytes, other: SessionBytes) {
    for part in [\Self.videos, \.segments, \.live, \.described, \.shared, \.superseded] {
      sum[keyPath: part] = min(sum[keyPath: part] + other[keyPath: part], maximum)
    }
  }

  /// More than any store has. Four of these and one more are an `Int`.
  static let maximum = 1 << 60

  /// Returns a number of bytes. A head that others have written may claim any.
  private static func whole(_ bytes: Double) -> Int { Int(min(bytes, Double(maximum))) }
}
