// Encodes pictures in memory, and prints where each segment goes: FramesFromMemory SESSION TARGET <unix ms>.jpg…
import Foundation
import SegmentEncoder

func encode(_ session: SessionID, _ files: [URL], into target: URL) throws {
  var encoder = try FrameEncoder(session: session)
  var segments: [Segment] = []
  for file in files {
    guard let timeMs = Int64(file.deletingPathExtension().lastPathComponent) else { continue }
    let image = [UInt8](try Data(contentsOf: file))
    segments += try encoder.append(CapturedFrame(image: image, timeMs: timeMs, source: file.lastPathComponent))
  }
  for segment in segments + (try encoder.finish()) {
    try Data(segment.video).write(to: target.appendingPathComponent(segment.videoName))
    try Data(segment.manifest).write(to: target.appendingPathComponent(segment.manifestName))
    print("\(segment.videoName): \(segment.frames.count) frames, \(segment.endMs - segment.startMs) ms")
  }
}

let words = CommandLine.arguments
guard words.count > 3, let session = SessionID(words[1]) else {
  print("usage: FramesFromMemory SESSION TARGET FILE...")
  exit(64)
}
do {
  try encode(session, words.dropFirst(3).map { URL(fileURLWithPath: $0) }, into: URL(fileURLWithPath: words[2]))
} catch {
  print("not encoded: \(error)")
  exit(1)
}
