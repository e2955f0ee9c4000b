// Lists the sessions of an object store, and writes the files that a player requests, and the picture on screen after a second and a half:
// ShowStore s3://BUCKET/PREFIX SESSION TARGET
import Foundation
import SegmentEncoder
import SegmentEncoderStore

let words = CommandLine.arguments
do {
  let catalog = try SessionCatalog(ofStore: words[1])
  let sessions = try catalog.sessions()
  for session in sessions { print("\(session.session): \(session.frames) frames") }
  guard let id = SessionID(words[2]), let playback = try catalog.playback(of: id) else {
    print("no session \(words[2])")
    exit(1)
  }
  let target = URL(fileURLWithPath: words[3])
  try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
  try Data(playback.playlist).write(to: target.appendingPathComponent("session.m3u8"))
  for line in String(decoding: playback.playlist, as: UTF8.self).split(separator: "\n") {
    let name = line.hasPrefix("#EXT-X-MAP:URI=") ? String(line.split(separator: "\"")[1]) : String(line)
    guard let bytes = try playback.fragment(named: name) ?? playback.initialization(named: name) else { continue }
    try Data(bytes).write(to: target.appendingPathComponent(name))
  }
  if let startMs = sessions.first(where: { $0.session == id })?.startMs,
    let frame = try playback.frame(at: startMs + 1_500)
  {
    try Data(frame.image).write(to: target.appendingPathComponent("frame.jpg"))
    print("after 1.5 s: captured at \(frame.captureMs), on screen until \(frame.shownMs.upperBound)")
  }
} catch {
  print("not shown: \(error)")
  exit(1)
}
