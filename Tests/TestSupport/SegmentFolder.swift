import Foundation

/// A directory of finished videos and Sentry's events about them, as another program leaves it.
public struct SegmentFolder {
  /// The start of the first video in tests, in unix milliseconds.
  public static let startMs: Int64 = 1_767_859_512_340

  public let path: String

  /// - Parameter scratch: the directory's name is the session.
  public init(_ name: String = "replay", in scratch: ScratchDirectory) throws { path = try scratch.directory(name) }

  /// Options of stock ffmpeg for the files of a producer.
  public enum Producer: String, CaseIterable, Sendable {
    /// AVAssetWriter: key frames only, BT.709, timescale 600, an edit list, `moov` last.
    case ios
    /// MediaMuxer: one key frame, Baseline, timescale 90 000, no edit list, `moov` last.
    case android
    /// Pictures that are stored in another order than they are shown.
    case reordering

    fileprivate var options: [String] {
      switch self {
      case .ios:
        [
          "-profile:v", "main", "-g", "1", "-bf", "0", "-colorspace", "bt709", "-color_primaries", "bt709",
          "-color_trc", "bt709", "-video_track_timescale", "600",
        ]
      case .android:
        ["-profile:v", "baseline", "-g", "1000", "-video_track_timescale", "90000", "-use_editlist", "0"]
      case .reordering: ["-bf", "2", "-x264-params", "b-adapt=0"]
      }
    }
  }

  /// Writes a video of a moving test picture.
  ///
  /// - Parameter rate: pictures a second.
  public func video(
    _ name: String, as producer: Producer = .android, frames: Int = 5, rate: Int = 1, size: String = "64x96",
    options: [String] = []
  ) throws {
    try Tool.output(
      "ffmpeg",
      [
        "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=s=\(size):r=\(rate)", "-frames:v", "\(frames)", "-c:v",
        "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-threads", "1",
      ] + producer.options + options + [path + "/" + name])
  }

  public func copy(_ name: String, as other: String) throws {
    try FileManager.default.copyItem(atPath: file(name), toPath: file(other))
  }

  public func file(_ name: String) -> String { path + "/" + name }

  public func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: file(name))) }

  public func write(_ name: String, _ bytes: Data) throws { try bytes.write(to: URL(fileURLWithPath: file(name))) }

  public func write(_ name: String, _ text: String) throws { try write(name, Data(text.utf8)) }

  /// Writes a list of events.
  public func events(_ events: [String], as name: String = "recording.json") throws {
    try write(name, "[[{\"type\":4,\"timestamp\":1,\"data\":{\"href\":\"\"}}],[\(events.joined(separator: ","))]]")
  }

  /// Returns an event.
  ///
  /// - Parameter atMs: from ``startMs``.
  public static func event(_ segment: Int, atMs: Int64, duration: Int = 5_000, frameRate: Int = 1) -> String {
    """
    {"type":5,"timestamp":\(startMs + atMs),"data":{"tag":"video","payload":{"segmentId":\(segment),"duration":\(duration),\
    "encoding":"h264","container":"mp4","frameRateType":"constant","frameRate":\(frameRate),"left":0,"top":0}}}
    """
  }
}
