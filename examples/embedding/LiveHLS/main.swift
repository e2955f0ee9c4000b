// Encodes pictures in memory, and shows them as a live HLS stream while they come: LiveHLS SESSION OUTPUT TARGET <unix ms>.jpg…
// Prints the playlist each time that it has grown. OUTPUT may be a directory in memory, such as one in /dev/shm.
import Foundation
import SegmentEncoder

/// A camera: the pictures of some files, one after the other. The next one is read once the encoder asks for it.
struct Camera: AsyncSequence, AsyncIteratorProtocol, Sendable {
  var files: ArraySlice<URL>

  func makeAsyncIterator() -> Camera { self }

  mutating func next() async throws -> CapturedFrame? {
    while let file = files.popFirst() {
      guard let timeMs = Int64(file.deletingPathExtension().lastPathComponent) else { continue }
      return CapturedFrame(image: [UInt8](try Data(contentsOf: file)), timeMs: timeMs, source: file.lastPathComponent)
    }
    return nil
  }
}

/// The files of a session's stream, as a server answers requests for them.
struct LiveStream {
  let session: SessionID
  let output: URL

  /// Adds a segment: its video first, since readers look for manifests.
  func add(_ segment: Segment) throws {
    let directory = output.appendingPathComponent("\(session)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    try Data(segment.video).write(to: directory.appendingPathComponent(segment.videoName))
    try Data(segment.manifest).write(to: directory.appendingPathComponent(segment.manifestName), options: .atomic)
  }

  /// Returns the stream as it is now; nil before its first segment.
  func playback() throws -> SessionPlayback? { try SessionCatalog(of: output.path).playback(of: session) }
}

/// Writes the playlist, and the files that it names and that are not there yet: the initialization (`#EXT-X-MAP`) and fragments.
func show(_ stream: LiveStream, in target: URL) throws {
  // The last segment is listed when the next one tells how long its last picture is shown, or after some seconds.
  guard let playback = try stream.playback(), !playback.playlist.isEmpty else { return }
  let playlist = String(decoding: playback.playlist, as: UTF8.self)
  for line in playlist.split(separator: "\n") {
    let name = line.hasPrefix("#EXT-X-MAP:URI=") ? String(line.split(separator: "\"")[1]) : String(line)
    let file = target.appendingPathComponent(name)
    guard !line.hasPrefix("#") || name != line, !FileManager.default.fileExists(atPath: file.path),
      let bytes = try playback.fragment(named: name) ?? playback.initialization(named: name)
    else { continue }
    try Data(bytes).write(to: file)
  }
  try Data(playlist.utf8).write(to: target.appendingPathComponent("session.m3u8"), options: .atomic)
  print(playlist)
}

let words = CommandLine.arguments
guard words.count > 4, let session = SessionID(words[1]) else {
  print("usage: LiveHLS SESSION OUTPUT TARGET FILE...")
  exit(64)
}
do {
  let stream = LiveStream(session: session, output: URL(fileURLWithPath: words[2]))
  let target = URL(fileURLWithPath: words[3])
  try FileManager.default.createDirectory(at: target, withIntermediateDirectories: true)
  let camera = Camera(files: words.dropFirst(4).map { URL(fileURLWithPath: $0) }[...])
  for try await segment in camera.segments(of: session, isFinal: true) {
    try stream.add(segment)
    try show(stream, in: target)
  }
} catch {
  print("not encoded: \(error)")
  exit(1)
}
