// Encodes a batch into a custom store, here a directory with one list for each session: OwnStore BATCH SESSION TARGET
import Foundation
import SegmentEncoder

struct OwnStore: SegmentStore {
  let target: URL

  func publish(_ segments: [FinishedSegment], of session: SessionID) throws {
    try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
    for segment in segments {
      let video = target.appendingPathComponent("\(session).\(segment.videoName)")
      // A repeated batch has the same names and bytes.
      if !FileManager.default.fileExists(atPath: video.path) {
        try FileManager.default.copyItem(atPath: segment.videoPath, toPath: video.path)
      }
      try Data(segment.manifest).write(
        to: target.appendingPathComponent("\(session).\(segment.manifestName)"), options: .atomic)
    }
  }
}

let words = CommandLine.arguments
do {
  let scratch = FileManager.default.temporaryDirectory.appendingPathComponent("own-store-\(getuid())").path
  let encoder = try BatchEncoder(store: OwnStore(target: URL(fileURLWithPath: words[3])), scratch: scratch)
  for receipt in try encoder.publish(words[1], session: words[2]) {
    print("\(receipt.segments) segments of \(receipt.bytes) bytes in \(words[3])")
  }
} catch {
  print("not published: \(error)")
  exit(1)
}
