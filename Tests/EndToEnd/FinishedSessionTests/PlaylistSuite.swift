import Foundation
import TestSupport
import Testing

/// A suite that reads the playlists of sessions.
protocol PlaylistSuite {
  var scratch: ScratchDirectory { get }
}

extension PlaylistSuite {
  func stitch(_ session: PublishedSession, to name: String = "hls") throws -> String {
    let result = try EncoderWorker.run("stitch", session.path, "--to", scratch.path(name), "--format", "hls")
    try #require(result.status == 0, "\(result.errors)")
    return scratch.path(name)
  }
}

/// The lines of a playlist, parsed.
struct Playlist {
  let lines: [String]

  init(_ path: String, _ name: String = "session.m3u8") throws {
    lines = try String(contentsOfFile: path + "/" + name, encoding: .utf8).split(separator: "\n").map(String.init)
  }

  /// Returns the values of a tag.
  func values(_ tag: String) -> [String] {
    lines.filter { $0.hasPrefix("#\(tag):") }.map { String($0.dropFirst(tag.count + 2)) }
  }

  var files: [String] { lines.filter { !$0.hasPrefix("#") } }
  var media: [String] { files.filter { $0 != "gap.m4s" } }
  /// The duration of each file, in milliseconds.
  var lengths: [Int64] { values("EXTINF").map { Int64($0.filter(\.isNumber)) ?? -1 } }
}
