// Encodes pictures, one a second, into one MP4 file: FirstSegment FILE.mp4 PICTURE.jpg…
import Foundation
import SegmentEncoder

let words = CommandLine.arguments
guard words.count > 2, let session = SessionID("lobby") else {
  print("usage: FirstSegment FILE.mp4 PICTURE...")
  exit(64)
}
