import Encoding
import FileSystem
import FrameBatches
import JSON
import Sessions

/// An entry of the session list.
public struct SessionSummary: Sendable, Equatable {
  /// The session's name.
  public let session: SessionID
  /// The start in unix milliseconds; nil if the session cannot be read: ``error`` has the reason.
  public let startMs: Int64?
  /// The end in unix milliseconds; nil if the session cannot be read.
  public let endMs: Int64?
  /// The number of frames.
  public let frames: Int
  /// The number of segments.
  public let segments: Int
  /// The number of gaps between segments.
  public let gaps: Int
  /// The size of all segments, in bytes.
  public let bytes: Int
  /// Whether the segment that ends the session is published.
  public let isComplete: Bool
  /// The reason why the session cannot be read; nil if it can.
  public let error: String?
  /// The numbers of its labels.
  package var labels = LabelCounts()
}

extension SessionSummary {
  /// - Parameter output: the directory that has the session's.
  /// - Throws: `DiskError` if the disk fails. An index that is not as it was written is an ``error`` of the summary.
  init(_ session: SessionID, in output: Directory) throws {
    do {
      let directory = try Directory(opening: session.description, in: output)
      guard case .bytes(let bytes)? = try directory.contents(of: IndexText.jsonFile, limit: 64 << 20) else {
        throw JSONError("not a plain file")
      }
      self = try SessionSummary(session, bytes)
    } catch let error as JSONError {
      self.init(session, error: "\(IndexText.jsonFile): \(error); encoder-worker verify --repair makes it anew")
    }
  }

  /// The summary of a session that cannot be read.
  init(_ session: SessionID, error: String) {
    self.init(
      session: session, startMs: nil, endMs: nil, frames: 0, segments: 0, gaps: 0, bytes: 0, isComplete: false,
      error: error)
  }

  private init(_ session: SessionID, _ bytes: [UInt8]) throws(JSONError) {
    let (json, gaps, segments) = try Self.parse(bytes, of: session)
    let (startMs, endMs) = (try json.count("startMs"), try json.count("endMs"))
    guard startMs <= endMs else { throw JSONError("endMs: before startMs") }
    self.init(
      session: session, startMs: startMs, endMs: endMs, frames: Int(try json.count("frames")), segments: segments,
      gaps: gaps, bytes: Int(try json.count("bytes")), isComplete: try json.required("complete", .bool), error: nil,
      labels: try LabelCounts(json.object?[SegmentLabels.key]))
  }

  /// Returns the members but the lists, and the lengths of those. Long lists of our own are counted only.
  private static func parse(
    _ bytes: [UInt8], of session: SessionID
  ) throws(JSONError) -> (json: JSONValue, gaps: Int, segments: Int) {
    if bytes.count > 1 << 20, let parts = IndexText.parts(of: bytes, session: session) {
      return (parts.members, parts.gapCount, parts.segmentCount)
    }
    guard bytes.count <= 4 << 20 else { throw JSONError("not as it was written") }
    let json = try JSONParser.parse(bytes)
    return (json, try json.required("gaps", .array).count, try json.required("segments", .array).count)
  }

  package var json: JSONValue {
    guard let startMs, let endMs else {
      return .object(["session": .string(session.description), "error": .string(error ?? "")])
    }
    let labels: [String: JSONValue] = labels.isEmpty ? [:] : [SegmentLabels.key: labels.json]
    return .object([
      "session": .string(session.description), "startMs": .number(startMs), "endMs": .number(endMs),
      "durationMs": .number(endMs - startMs), "frames": .number(frames), "segments": .number(segments),
      "gaps": .number(gaps), "bytes": .number(bytes), "complete": .bool(isComplete),
    ]).setting(labels)
  }
}
