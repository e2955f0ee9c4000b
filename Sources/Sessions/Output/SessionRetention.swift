// `OUTPUT/SESSION/retention.json`: the record that the first segments of a session were removed. It is on disk before anything of
// them is changed, so a crash at any line leaves a session that begins with a whole segment: all readers and publishers leave out
// the segments before it, whatever files are left of those.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import JSON

/// The record that the first segments of a session were removed.
package struct SessionRetention: Sendable, Equatable {
  package static let file = "retention.json"
  private static let format = "session-retention/1"
  /// Maximum size of the file, in bytes.
  fileprivate static let maximumBytes = 4 << 10
  /// Later than any capture, in unix milliseconds; more than any number of segments.
  private static let bounds: ClosedRange<Int64> = 0...(1 << 44)

  /// The start of the first segment that stayed, in unix milliseconds. Segments that start before it are not published any more.
  package var startMs: Int64
  /// The start of the session before the first removal, in unix milliseconds: the times in fragments of `hls/` count from it.
  package let originMs: Int64
  /// The number of removed segments.
  package var segments: Int
  /// Whether files of removed segments may still be there.
  package var isRemoving: Bool
  /// When the last of the removed segments was published, in unix milliseconds; nil if an earlier version removed them.
  let publishedMs: Int64?

  init(startMs: Int64, originMs: Int64, segments: Int, isRemoving: Bool, publishedMs: Int64?) {
    (self.startMs, self.originMs, self.segments, self.isRemoving) = (startMs, originMs, segments, isRemoving)
    self.publishedMs = publishedMs
  }

  init(_ json: JSONValue, of session: SessionID) throws(JSONError) {
    func number(_ key: String) throws(JSONError) -> Int64 { try json.required(key, in: Self.bounds) }
    guard try json.required("format", .string) == Self.format else { throw JSONError("format: another one") }
    guard try json.required("session", .string) == session.description else { throw JSONError("session: another one") }
    self.init(
      startMs: try number("startMs"), originMs: try number("originMs"), segments: Int(try number("removedSegments")),
      isRemoving: try json.required("removing", .bool), publishedMs: try json.optional("publishedMs", .integer))
    guard originMs <= startMs else { throw JSONError("originMs: later than startMs") }
  }

  /// Whether a segment with this start was removed.
  package func removes(_ startMs: Int64) -> Bool { startMs < self.startMs }

  /// Whether a file of the session's directory belongs to a removed segment.
  func removes(file: String) -> Bool {
    let start = SegmentName.start(ofVideo: file) ?? SegmentName.start(ofManifest: file)
    return
      (start ?? SegmentName.start(ofEvent: file) ?? SegmentName.start(ofText: file)
      ?? SegmentName.start(ofLabels: file)).map(removes) ?? false
  }

  func bytes(of session: SessionID) -> [UInt8] { json(of: session).bytes() + [UInt8(ascii: "\n")] }

  func json(of session: SessionID) -> JSONValue {
    var members: [String: JSONValue] = [
      "format": .string(Self.format), "session": .string(session.description), "startMs": .number(startMs),
      "originMs": .number(originMs), "removedSegments": .number(segments), "removing": .bool(isRemoving),
    ]
    members["publishedMs"] = publishedMs.map { .number($0) }
    return .object(members)
  }
}

extension SessionDirectory {
  /// Returns the record of removed segments; nil if none was removed. Read it after a listing of the directory: a removal writes it
  /// before it takes the first file away.
  ///
  /// - Throws: ``DamagedOutput`` for a file that is no such record: removed segments would come back.
  package func retention() throws -> SessionRetention? {
    let file = path + "/" + SessionRetention.file
    do {
      let directory = try Directory(opening: path, followingLinks: false)
      switch try directory.contents(of: SessionRetention.file, limit: SessionRetention.maximumBytes) {
      case nil: return nil
      case .refused(let reason): throw JSONError("\(reason)")
      case .bytes(let bytes): return try SessionRetention(JSONParser.parse(bytes), of: session)
      }
    } catch let error as JSONError {
      throw DamagedOutput(path: file, cause: "no record of removed segments: \(error)")
    } catch let error as DiskError where error.code == ENOENT {
      return nil
    }
  }

  /// Writes the record, durable when this returns. Call it with the session locked.
  func write(_ retention: SessionRetention, temporary: String) throws {
    try DurableFile.replace(path + "/" + SessionRetention.file, retention.bytes(of: session), temporary: temporary)
    try Directory(opening: path).sync()
  }

  /// Returns what `body` reads of the session. If first segments are removed meanwhile, it is called again.
  package func readingRetained<R>(_ body: () throws -> R) throws -> R {
    while true {
      let before = try retention()
      do {
        return try body()
      } catch let error where error is DamagedOutput || error is BadSession {
        guard try retention() != before else { throw error }
      }
    }
  }
}
