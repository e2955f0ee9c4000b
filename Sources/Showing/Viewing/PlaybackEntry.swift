// One manifest as players need it: its object in the timeline.

import Encoding
import FileSystem
import FrameBatches
import ISOMedia
import JSON
import Sessions

extension SessionPlayback {
  /// The cached parts of a manifest.
  package struct Entry: Sendable {
    /// Of the manifest.
    let stamp: FileStamp?
    /// Of the labels that came later; nil if there are none.
    var labelStamp: FileStamp?
    let segment: PublishedSegment
    let codec: String
    /// Lists as JSON.
    let frames: [UInt8]
    /// For each frame its number of changed blocks, or null; empty if none is known.
    let changedBlocks: [UInt8]
    let refused: [UInt8]
    let refusedCount: Int
    /// The labels; empty if there are none.
    let labels: [UInt8]
    /// The number of pointer events, which pages read from the manifest.
    let touches: Int
    let marks: SegmentMarks
    /// The digest of the manifest.
    let identity: String
  }
}

extension SessionPlayback.Entry {
  /// - Parameters:
  ///   - opened: the session's directory.
  ///   - other: an entry whose memory it may share.
  /// - Throws: `BadSession`, ``DamagedOutput`` if the manifest is not as it was written.
  init(
    _ startMs: Int64, of directory: SessionDirectory, in opened: Directory, like other: SessionPlayback.Entry?
  ) throws {
    var (segment, json, stamp) = try directory.soundManifest(startMs, in: opened)
    if let other { segment.shareEncoder(of: other.segment) }
    /// Writes a list of objects, whose keys must be in order.
    func list(_ key: String, _ members: ([String: JSONValue], inout [UInt8]) -> Void) -> [UInt8] {
      var text = Array("[".utf8)
      for (number, item) in (json.object?[key]?.array ?? []).enumerated() {
        text += (number > 0 ? ",{" : "{").utf8
        members(item.object ?? [:], &text)
        text.append(UInt8(ascii: "}"))
      }
      return text + [UInt8(ascii: "]")]
    }
    // In one list, not in each frame: pages of long sessions stay small.
    let changes = (json.object?["frames"]?.array ?? []).map { $0.object?["changedBlocks"]?.integer }
    // Only the members that pages use.
    self.init(
      stamp: stamp, segment: segment, codec: json.object?["codec"]?.string ?? "",
      frames: list("frames") { frame, text in
        text += "\"holdMs\":\(frame["holdMs"]?.integer ?? 0),\"source\":".utf8
        JSONValue.append(frame["source"]?.string ?? "", to: &text)
        text += ",\"status\":".utf8
        JSONValue.append(frame["status"]?.string ?? "", to: &text)
        text += ",\"timeMs\":\(frame["timeMs"]?.integer ?? 0)".utf8
      },
      changedBlocks: changes.contains { $0 != nil }
        ? JSONValue.array(changes.map { $0.map { .number($0) } ?? .null }).bytes() : [],
      refused: list("refused") { frame, text in
        text += "\"reason\":".utf8
        JSONValue.append(frame["reason"]?.string ?? "", to: &text)
        text += ",\"source\":".utf8
        JSONValue.append(frame["source"]?.string ?? "", to: &text)
      },
      refusedCount: json.object?["refused"]?.array?.count ?? 0,
      labels: Self.labels(in: json), touches: json.object?["touches"]?.object?["events"]?.array?.count ?? 0,
      marks: SegmentMarks(json, of: segment), identity: json.object?[SegmentManifest.sealKey]?.string ?? "")
  }

  /// The size of its lists.
  var listBytes: Int { frames.count + changedBlocks.count + refused.count + labels.count }

  /// Maximum bytes of a label's text in the timeline, and maximum number of labels of a segment.
  private static let (labelBytes, mostLabels) = (200, 1_000)

  /// Returns the labels of a manifest as a list of JSON, with the members that pages use.
  private static func labels(in json: JSONValue) -> [UInt8] {
    let all = SegmentLabels.labels(in: json)
    guard !all.isEmpty else { return [] }
    return JSONValue.array(
      all.prefix(mostLabels).map { label in
        var members: [String: JSONValue] = [
          "kind": .string(label.kind), "text": .string(label.text.cut(to: labelBytes)), "timeMs": .number(label.timeMs),
        ]
        members["endMs"] = label.endMs.map { .number($0) }
        members["level"] = label.level.map { .string($0.rawValue) }
        return .object(members)
      }
    ).bytes()
  }

  /// Writes its object in the timeline.
  func append(to text: inout [UInt8], lengthMs: Int64, _ media: HLSPlaylist.Entry) {
    text += "{\"codec\":".utf8
    JSONValue.append(codec, to: &text)
    text += ",\"codedHeight\":\(segment.codedHeight),\"codedWidth\":\(segment.codedWidth)".utf8
    text += ",\"file\":\"\(segment.file)\",\"fragment\":\"\(media.file)\",\"height\":\(segment.height)".utf8
    text += ",\"initialization\":\"\(media.initialization)\",\"lengthMs\":\(lengthMs)".utf8
    text += ",\"startMs\":\(segment.startMs)".utf8
    if touches > 0 { text += ",\"touches\":\(touches)".utf8 }
    text += ",\"width\":\(segment.width)".utf8
    if !changedBlocks.isEmpty {
      text += ",\"changedBlocks\":".utf8
      text += changedBlocks
    }
    text += ",\"frames\":".utf8
    text += frames
    text += ",\"refused\":".utf8
    text += refused
    if !labels.isEmpty {
      text += ",\"labels\":".utf8
      text += labels
    }
    text.append(UInt8(ascii: "}"))
  }
}
