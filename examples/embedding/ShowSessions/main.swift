// Lists the sessions of a directory, and writes the files that a player requests: ShowSessions OUTPUT SESSION TARGET
import Foundation
import SegmentEncoder

let words = CommandLine.arguments
do {
  let catalog = try SessionCatalog(of: words[1])
  for session in try catalog.sessions() { print("\(session.session): \(session.frames) frames") }
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
  if let picture = try playback.thumbnail() {
    try Data(picture).write(to: target.appendingPathComponent("first.jpg"))
  }
  print("a player can open \(target.path)/session.m3u8")
} catch {
  print("not shown: \(error)")
  exit(1)
}
