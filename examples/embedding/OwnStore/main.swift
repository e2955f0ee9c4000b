// Encodes a batch into a custom store, here a directory with one list for each session: OwnStore BATCH SESSION TARGET
import Foundation
import SegmentEncoder

struct OwnStore: SegmentStore {
  let target: URL

  func publish(_ segments: [Segment], of session: SessionID) throws {
    try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
    for segment in segments {
      // A repeated batch has the same names and bytes.
      for (name, bytes) in [(segment.videoName, segment.video), (segment.manifestName, segment.manifest)] {
        try Data(bytes).write(to: target.appendingPathComponent("\(session).\(name)"), options: .atomic)
      }
    }
  }
}

let words = CommandLine.arguments
do {
  let encoder = BatchEncoder(store: OwnStore(target: URL(fileURLWithPath: words[3])))
  for receipt in try encoder.publish(words[1], session: words[2]) {
    print("\(receipt.segments) segments of \(receipt.bytes) bytes in \(words[3])")
  }
} catch {
  print("not published: \(error)")
  exit(1)
}
