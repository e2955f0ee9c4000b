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
  /// - Parameters:
  ///   - rate: pictures a second.
  ///   - input: ffmpeg's options for other pictures.
  public func video(
    _ name: String, as producer: Producer = .android, frames: Int = 5, rate: Int = 1, size: String = "64x96",
    of input: [String]? = nil, options: [String] = []
  ) throws {
    var arguments = ["-v", "error", "-y"]
    arguments += input ?? ["-f", "lavfi", "-i", "testsrc2=s=\(size):r=\(rate)"]
    arguments += [
      "-frames:v", "\(frames)", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-threads", "1",
    ]
    arguments += producer.options + options
    arguments.append(path + "/" + name)
    try Tool.output("ffmpeg", arguments)
  }

  /// Returns the frames of `exact-1fps`, encoded as on iOS and copied; a gap and a seam are between the videos.
  public static func importedSession(in scratch: ScratchDirectory) throws -> PublishedSession {
    let folder = try SegmentFolder("imported-ios", in: scratch)
    for (segment, start) in [0, 4, 8].enumerated() {
      let input = ["-framerate", "1", "-start_number", "\(start)", "-i", Fixture("exact-1fps").path + "/%04d.jpg"]
      try folder.video("\(segment).mp4", as: .ios, frames: 4, of: input)
    }
    try folder.events([event(0, atMs: 0), event(1, atMs: 9_000), event(2, atMs: 13_050)])
    let result = try EncoderWorker.run("encode", folder.path, "--output", scratch.path("output"))
    guard result.status == 0 else { throw Tool.Failure(result.errors) }
    return try PublishedSession(scratch.path("output/imported-ios"))
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
