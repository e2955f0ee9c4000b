import Foundation
import JSON

/// A session of many segments, made without encoding.
public enum LongSession {
  /// The start of the first segment, in unix milliseconds.
  public static let startMs: Int64 = 1_767_859_512_340

  /// Makes a session of segments of five seconds; each is a hard link to the first one of a fixture.
  ///
  /// - Parameters:
  ///   - scratch: gets an output with the original, too.
  ///   - output: the directory of the session, in `scratch`.
  ///   - fixture: five captures, a second each, from ``startMs`` on.
  /// - Returns: the session's path.
  public static func make(
    of count: Int, in scratch: ScratchDirectory, output: String = ".", from fixture: Fixture = Fixture("exact-1fps")
  ) throws -> String {
    let original = try EncoderWorker.encode(fixture, into: scratch)
    let session = URL(fileURLWithPath: fixture.name).lastPathComponent
    let video = original.video(original.manifests[0])
    var manifest = try SegmentManifestJSON(video.replacingOccurrences(of: ".mp4", with: ".json"))
    let frames = try manifest.frames
    let path = try scratch.directory(output == "." ? session : output + "/" + session)
    for number in 0..<count {
      let shiftMs = Int64(number) * 5_000
      let name = "segment-\(startMs + shiftMs)"
      manifest["batchDigest"] = .string("\(number)")
      manifest["parts"] = .number(1)
      manifest["file"] = .string(name + ".mp4")
      manifest["startMs"] = .number(startMs + shiftMs)
      manifest["endMs"] = .number(startMs + 5_000 + shiftMs)
      manifest["frames"] = .array(
        frames.enumerated().map { index, frame in
          frame.setting(["timeMs": .number(startMs + shiftMs + Int64(index) * 1_000)])
        })
      try manifest.write(to: "\(path)/\(name).json")
      try FileManager.default.linkItem(atPath: video, toPath: "\(path)/\(name).mp4")
    }
    return path
  }
}
