import Foundation

/// Pictures of 2400×3200, which take long to decode and encode. Each process makes them once.
public enum LargePictures {
  private static let made = Result {
    let scratch = try ScratchDirectory()
    try Tool.output(
      "ffmpeg",
      ["-v", "error", "-f", "lavfi", "-i", "testsrc2=s=2400x3200:r=1", "-frames:v", "4", scratch.path("%d.png")])
    return scratch
  }

  /// Fills a directory with frames at intervals of one second. Each frame differs from the previous one.
  public static func fill(_ directory: String, frames: Int) throws {
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let pictures = try made.get()
    for frame in 0..<frames {
      try FileManager.default.linkItem(
        atPath: pictures.path("\(frame % 4 + 1).png"), toPath: directory + "/\(1_767_859_512_340 + frame * 1_000).png")
    }
  }
}
