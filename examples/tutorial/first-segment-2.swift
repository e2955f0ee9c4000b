// Encodes pictures, one a second, into one MP4 file: FirstSegment FILE.mp4 PICTURE.jpg…
import Foundation
import SegmentEncoder

let words = CommandLine.arguments
guard words.count > 2, let session = SessionID("lobby") else {
  print("usage: FirstSegment FILE.mp4 PICTURE...")
  exit(64)
}
let startMs = Int64(1_767_859_512_340)
do {
  var encoder = try FrameEncoder(session: session)
} catch {
  print("not encoded: \(error)")
  exit(1)
}
