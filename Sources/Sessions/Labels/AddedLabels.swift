// Labels that came after the pictures of their segment: `segment-<start>.labels.json`, beside its manifest. A manifest never changes. They
// have the life of the segment: what removes it removes them.

import Encoding
import FileSystem
import FrameBatches
import JSON

package struct AddedLabels: Sendable, Equatable {
  package static let format = "segment-labels/1"
  /// Maximum size of a file: the labels of a batch, in escapes of JSON.
  package static let maximumBytes = 16 << 20

  package let session: SessionID
  package let startMs: Int64
  /// In the order of their times, at least one.
  package private(set) var labels: [Label]
}

extension AddedLabels {
  package var bytes: [UInt8] {
    JSONValue.object([
      "format": .string(Self.format), "session": .string(session.description),
      "file": .string(SegmentName.video(startMs)), SegmentLabels.key: labels.json,
    ]).bytes() + [UInt8(ascii: "\n")]
  }

  /// Reads a file.
  package init(_ bytes: [UInt8]) throws(JSONError) {
    let json = try JSONParser.parse(bytes)
    guard try json.required("format", .string) == Self.format else { throw JSONError("format: not \(Self.format)") }
    guard let session = SessionID(try json.required("session", .string)),
      let startMs = SegmentName.start(ofVideo: try json.required("file", .string))
    else { throw JSONError("session, file: no names") }
    (self.session, self.startMs) = (session, startMs)
    labels = try SegmentLabels.read(json.object?[SegmentLabels.key] ?? .null)
  }

  /// Returns a manifest with all labels.
  func joined(to manifest: JSONValue) -> JSONValue {
    manifest.setting([SegmentLabels.key: (SegmentLabels.labels(in: manifest) + labels).inOrder.json])
  }

  /// Returns the file of a segment with further labels.
  ///
  /// - Parameters:
  ///   - new: in the order of their times. Those that the segment has are left out.
  ///   - there: the file as it is; nil if there is none.
  ///   - manifest: the labels of the manifest.
  /// - Returns: nil if nothing is new; and the number of labels beyond the limits of a batch.
  static func adding(
    _ new: [Label], to there: AddedLabels?, manifest: [Label], of session: SessionID, startMs: Int64
  ) -> (file: AddedLabels?, added: Int, leftOut: Int) {
    let before = there?.labels ?? []
    var known = Set((manifest + before).map { $0.json.bytes() })
    let missing = new.filter { known.insert($0.json.bytes()).inserted }
    var list = LabelList()
    for label in before + missing { list.append(label) }
    let added = list.labels.count - before.count
    let file = AddedLabels(session: session, startMs: startMs, labels: list.labels.inOrder)
    return (added > 0 ? file : nil, added, missing.count - added)
  }
}

extension AddedLabels {
  /// Returns the labels before some starts, and those from them on.
  ///
  /// - Parameter starts: of later segments, in order.
  func divided(at starts: [Int64]) -> (staying: AddedLabels?, moving: [AddedLabels]) {
    let parts = labels.divided(at: [startMs] + starts)
    let files = zip([startMs] + starts, parts).map { AddedLabels(session: session, startMs: $0, labels: $1) }
      .filter { !$0.labels.isEmpty }
    return (files.first { $0.startMs == startMs }, files.filter { $0.startMs != startMs })
  }
}

extension SessionDirectory {
  /// Returns the labels that came later; nil if there are none, or they cannot be read.
  func addedLabels(of startMs: Int64) throws -> AddedLabels? {
    try addedLabels(of: startMs, in: Directory(opening: path, followingLinks: false))
  }

  /// - Parameter directory: that of the session.
  func addedLabels(of startMs: Int64, in directory: Directory) throws -> AddedLabels? {
    let name = SegmentName.labels(startMs)
    guard case .bytes(let bytes)? = try directory.contents(of: name, limit: AddedLabels.maximumBytes),
      let added = try? AddedLabels(bytes), added.session == session, added.startMs == startMs
    else { return nil }
    return added
  }

  /// Returns the starts of the segments with labels that came later.
  package func labelledStarts() throws -> Set<Int64> {
    guard try DurableFile.isDirectory(path) else { return [] }
    let entries = try Directory(opening: path, followingLinks: false).entries()
    return Set(entries.compactMap { SegmentName.start(ofLabels: $0.name) })
  }

  /// Returns the bytes of all labels that came later.
  func addedLabelBytes() throws -> Int {
    try labelledStarts().reduce(0) { try $0 + DurableFile.size(of: path + "/" + SegmentName.labels($1)) }
  }

  /// Returns what is wrong with the files of labels.
  ///
  /// - Parameter names: in the session's directory.
  func problemsOfAddedLabels(_ names: [String], _ segments: [PublishedSegment]) throws -> [Problem] {
    let present = Set(names)
    return try segments.map { SegmentName.labels($0.startMs) }.filter(present.contains).compactMap { name in
      guard let bytes = try bytes(of: name, limit: AddedLabels.maximumBytes) else {
        return Problem(file: name, what: "not a plain file of its size")
      }
      do throws(JSONError) {
        let added = try AddedLabels(bytes)
        return added.session == session && SegmentName.labels(added.startMs) == name
          ? nil : Problem(file: name, what: "of another segment")
      } catch {
        return Problem(file: name, what: "\(error); remove it, and add the labels again")
      }
    }
  }
}
