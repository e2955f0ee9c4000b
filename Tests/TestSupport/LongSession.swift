import Foundation

/// A session of many segments, made without encoding.
public enum LongSession {
  /// The start of the first segment, in unix milliseconds.
  public static let startMs: Int64 = 1_767_859_512_340

  /// Makes a session of segments of five seconds; each is a hard link to the same file.
  ///
  /// - Parameters:
  ///   - scratch: gets an output with the original, too.
  ///   - output: the directory of the session, in `scratch`.
  /// - Returns: the session's path.
  public static func make(of count: Int, in scratch: ScratchDirectory, output: String = ".") throws -> String {
    let original = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let video = original.video(original.manifests[0])
    let text = try Data(contentsOf: URL(fileURLWithPath: video.replacingOccurrences(of: ".mp4", with: ".json")))
    guard var manifest = try JSONSerialization.jsonObject(with: text) as? [String: Any],
      let frames = manifest["frames"] as? [[String: Any]]
    else { throw Tool.Failure("no manifest beside \(video)") }
    let path = try scratch.directory(output == "." ? "exact-1fps" : output + "/exact-1fps")
    for number in 0..<count {
      let shiftMs = Int64(number) * 5_000
      let name = "segment-\(startMs + shiftMs)"
      manifest["batchDigest"] = "\(number)"
      manifest["parts"] = 1
      manifest["file"] = name + ".mp4"
      manifest["startMs"] = startMs + shiftMs
      manifest["endMs"] = startMs + 5_000 + shiftMs
      manifest["frames"] = frames.enumerated().map { index, frame in
        frame.merging(["timeMs": startMs + shiftMs + Int64(index) * 1_000]) { $1 }
      }
      try EncoderWorker.seal(manifest).write(to: URL(fileURLWithPath: "\(path)/\(name).json"))
      try FileManager.default.linkItem(atPath: video, toPath: "\(path)/\(name).mp4")
    }
    return path
  }
}
