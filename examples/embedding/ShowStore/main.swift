// Lists the sessions of an object store, and writes the picture of one that is on screen after a second and a half:
// ShowStore s3://BUCKET/PREFIX SESSION PICTURE
import Foundation
import SegmentEncoder
import SegmentEncoderStore

let words = CommandLine.arguments
do {
  let catalog = try SessionCatalog(ofStore: words[1])
  let sessions = try catalog.sessions()
  for session in sessions { print("\(session.session): \(session.frames) frames") }
  guard let id = SessionID(words[2]), let startMs = sessions.first(where: { $0.session == id })?.startMs,
    let frame = try catalog.playback(of: id)?.frame(at: startMs + 1_500)
  else {
    print("no session \(words[2])")
    exit(1)
  }
  try Data(frame.image).write(to: URL(fileURLWithPath: words[3]))
  print("after 1.5 s: captured at \(frame.captureMs), on screen until \(frame.shownMs.upperBound)")
} catch {
  print("not shown: \(error)")
  exit(1)
}
