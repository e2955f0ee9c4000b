// The sessions of an output, and the segments that their lists name, for the removal of the oldest.

import Encoding
import FileSystem
import FrameBatches

/// The sessions of an output, by the bytes that they take.
struct SizedOutput: SessionsWithSizes {
  let output: String
  let bytes: OutputBytes

  func bytes(of session: SessionID) -> SessionBytes? { try? bytes.bytes(of: session) }

  func segments(of session: SessionID) -> ListedSegments? {
    ListedSegments(SessionDirectory(output: output, session: session))
  }
}

/// The starts of the segments that `session.ffconcat` lists, read a part at a time.
struct ListedSegments: OrderedSegments {
  private static let partBytes = 8 << 10

  let directory: SessionDirectory
  private var offset = 0
  /// The next starts, the first of them last.
  private var starts: [Int64] = []

  init(_ directory: SessionDirectory) { self.directory = directory }

  var session: SessionID { directory.session }

  func bytesOfVideo(_ startMs: Int64) -> Int {
    OutputBytes.size(of: directory.path + "/" + SegmentName.video(startMs))
  }

  /// A session that cannot be read stays.
  func isOver(_ rule: RemovalRule) -> Bool {
    (try? directory.isOver(rule, directory.publishedStarts())) == true
  }

  /// Returns the start of the next segment; nil behind the last one.
  mutating func next() -> Int64? {
    while starts.isEmpty, read() {}
    return starts.popLast()
  }

  /// - Returns: whether there may be more.
  private mutating func read() -> Bool {
    guard let opened = try? Directory(opening: directory.path, followingLinks: false),
      let file = try? OpenFile(IndexText.scriptFile, in: opened), offset < file.size,
      case let bytes = FileBytes(file).bytes(at: offset, min(Self.partBytes, file.size - offset)),
      let end = bytes.lastIndex(of: UInt8(ascii: "\n"))
    else { return false }
    offset += end + 1
    let found = bytes[...end].split(separator: UInt8(ascii: "\n")).compactMap { line in
      line.starts(with: "file ".utf8)
        ? SegmentName.start(ofVideo: String(decoding: line.dropFirst(5), as: UTF8.self)) : nil
    }
    starts = found.reversed()
    return true
  }
}
