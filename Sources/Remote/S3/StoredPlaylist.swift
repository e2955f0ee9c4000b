import Encoding
import FileSystem
import Sessions

/// The kind of a playlist: HLS, or a list of files for ffmpeg.
package enum PlaylistFormat: String, CaseIterable, Sendable {
  case hls, ffconcat
}

/// A session's playlist in a store. Replaces its file names by URLs.
package struct StoredPlaylist {
  package let session: String
  package let format: PlaylistFormat

  package init(session: String, format: PlaylistFormat) {
    self.session = session
    self.format = format
  }

  /// A session of a day has some 3 MB.
  package static let maximumBytes = 64 << 20

  private static let end = "#EXT-X-ENDLIST"
  private static let map = "#EXT-X-MAP:URI=\""
  private static let range = "\",BYTERANGE=\""

  /// The key of the playlist.
  package var key: String { folder + (format == .hls ? "session.m3u8" : "session.ffconcat") }

  /// The prefix of the playlist and of the files that it names.
  private var folder: String { "output/\(session)/" + (format == .hls ? "hls/" : "") }

  /// The remedy for a missing playlist.
  package var advice: String {
    format == .hls ? "check that its worker runs with --hls" : "check that it is published there"
  }

  /// - Parameter link: returns the URL of an object.
  package func linked(_ text: String, _ link: (String) throws -> String) throws -> String {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    return try lines.map { try self.linked($0, link) }.joined(separator: "\n")
  }

  /// Whether the playlist goes on: then its last segment may be held back, and players reload it.
  package func goesOn(_ text: String) -> Bool {
    format == .hls && !text.split(separator: "\n").contains { $0 == Self.end }
  }

  private func linked(_ line: Substring, _ link: (String) throws -> String) throws -> String {
    switch format {
    case .hls where line.hasPrefix(Self.map) && line.hasSuffix("\""):
      try linkedMap(line.dropFirst(Self.map.count), link)
    case .hls where line.isEmpty || line.hasPrefix("#"): String(line)
    case .hls: try link(key(of: line))
    case .ffconcat where line.hasPrefix("file "):
      "file '\(try link(key(of: line.dropFirst("file ".count).filter { $0 != "'" })))'"
    case .ffconcat: String(line)
    }
  }

  /// - Parameter value: the name of a file, a quotation mark, and the range of bytes of a pack.
  private func linkedMap(_ value: Substring, _ link: (String) throws -> String) throws -> String {
    let name = value.prefix { $0 != "\"" }
    let rest = value.dropFirst(name.count)
    let range = rest.dropFirst(Self.range.count).dropLast()
    let isRange = rest.hasPrefix(Self.range) && !range.isEmpty && range.allSatisfy { "0123456789@".contains($0) }
    // Anything else is no attribute of ours: the name may go on behind the quotation mark.
    return try "\(Self.map)\(link(key(of: rest == "\"" || isRange ? name : value.dropLast())))\(rest)"
  }

  /// Only for files beside the playlist, and packs: it must not lead clients to other objects of the bucket.
  private func key(of name: some StringProtocol) throws -> String {
    if format == .hls, name.hasPrefix("../"), SegmentName.pack(named: String(name.dropFirst(3))) != nil {
      return "output/\(session)/\(name.dropFirst(3))"
    }
    guard name.isPlain(and: "-_."), !name.isEmpty, !name.hasPrefix(".") else {
      throw BadSession(key, "names '\(name)', which is no file beside it", advice: "publish the session again")
    }
    return folder + name
  }
}
