import FileSystem
import FrameBatches
import JSON

/// A batch as the journal has it: its name, its source files, and the session that it continues.
struct BatchRecord: Equatable {
  let batch: String
  let stream: String
  /// The session of the batch.
  let name: String
  /// The session that goes on in the stream; nil after its end.
  let session: OpenSession?
  let isFinal: Bool
  let files: [FolderFile]
}

/// A version of a file that has a copy.
package struct HeldVersion: Sendable, Equatable {
  package let file: FolderFile
  let stream: String
  /// The session that it belongs to.
  let session: String
  let timeMs: Int64
  let capture: Batch.Capture
}

/// A line of the journal.
enum JournalLine: Equatable {
  /// The batch is whole in its draft, which is about to be renamed into `incoming/`.
  case batch(BatchRecord)
  /// The batch is in `incoming/`, or was, and its sources are gone, but for these.
  case done(String, kept: [FolderFile])
  /// Files that batches of earlier runs have, and that are still in the folder.
  case taken([FolderFile])
  /// The session that goes on in a stream; nil after its end.
  case session(String, OpenSession?)
  /// A version of a file is about to be copied to a file of this name in `held/`.
  case held(String, HeldVersion)
  /// The last pictures in batches.
  case recent([String])
}

extension JournalLine {
  var bytes: [UInt8] { json.bytes() + [UInt8(ascii: "\n")] }

  private var json: JSONValue {
    switch self {
    case .batch(let record):
      .object([
        "batch": .string(record.batch), "group": .string(record.stream), "name": .string(record.name),
        "session": record.session.map(Self.json) ?? .null, "final": .bool(record.isFinal),
        "files": Self.json(record.files),
      ])
    case .done(let name, let kept): .object(["done": .string(name), "kept": Self.json(kept)])
    case .taken(let files): .object(["taken": Self.json(files)])
    case .session(let stream, let session):
      .object(["group": .string(stream), "session": session.map(Self.json) ?? .null])
    case .held(let name, let version):
      .object([
        "held": .string(name), "files": Self.json([version.file]), "stream": .string(version.stream),
        "session": .string(version.session), "timeMs": .number(version.timeMs),
        "capture": .string(version.capture.rawValue),
      ])
    case .recent(let names): .object(["recent": .array(names.map { .string($0) })])
    }
  }

  /// - Returns: nil for anything that is no line of a journal.
  init?(_ json: JSONValue) {
    guard let members = json.object else { return nil }
    if let name = members["done"]?.string {
      self = .done(name, kept: Self.files(members["kept"]))
    } else if members["taken"] != nil {
      self = .taken(Self.files(members["taken"]))
    } else if let names = members["recent"]?.array {
      self = .recent(names.compactMap(\.string))
    } else if let name = members["held"]?.string {
      guard let file = Self.files(members["files"]).first, !name.contains("/") else { return nil }
      // Earlier versions wrote the file alone, whose time of modification is the capture.
      self = .held(
        name,
        HeldVersion(
          file: file, stream: members["stream"]?.string ?? "", session: members["session"]?.string ?? "",
          timeMs: members["timeMs"]?.integer ?? file.stamp.modified.flooredDivision(by: 1_000_000),
          capture: members["capture"]?.string.flatMap(Batch.Capture.init) ?? .onChange))
    } else if let stream = members["group"]?.string {
      let session = Self.session(members["session"])
      guard let batch = members["batch"]?.string else {
        self = .session(stream, session)
        return
      }
      guard let name = members["name"]?.string ?? session?.name, !batch.contains("/"), !batch.hasPrefix(".") else {
        return nil
      }
      let isFinal = members["final"]?.bool ?? false
      // Earlier versions wrote no name, and the session of a final batch, too.
      let isOver = isFinal && members["name"] == nil
      self = .batch(
        BatchRecord(
          batch: batch, stream: stream, name: name, session: isOver ? nil : session, isFinal: isFinal,
          files: Self.files(members["files"])))
    } else {
      return nil
    }
  }

  private static func json(_ session: OpenSession) -> JSONValue {
    .object([
      "name": .string(session.name), "lastMs": .number(session.lastMs), "endMs": .number(session.endMs),
      "intervalMs": .number(session.intervalMs), "open": .bool(session.isOpen),
    ])
  }

  private static func session(_ json: JSONValue?) -> OpenSession? {
    guard let members = json?.object, let name = members["name"]?.string, let lastMs = members["lastMs"]?.integer,
      let endMs = members["endMs"]?.integer, let intervalMs = members["intervalMs"]?.integer
    else { return nil }
    return OpenSession(
      name: name, lastMs: lastMs, endMs: endMs, intervalMs: intervalMs, isOpen: members["open"]?.bool ?? false)
  }

  /// Each file: name, inode, size, modification in nanoseconds.
  private static func json(_ files: [FolderFile]) -> JSONValue {
    .array(
      files.map {
        .array([
          .string($0.name), .number($0.stamp.inode), .number($0.stamp.size), .number($0.stamp.modified),
        ])
      })
  }

  private static func files(_ json: JSONValue?) -> [FolderFile] {
    (json?.array ?? []).compactMap { entry in
      guard let parts = entry.array, parts.count == 4, let name = parts[0].string, case .number(let inode) = parts[1],
        let inode = UInt64(inode), let size = parts[2].integer, let modified = parts[3].integer
      else { return nil }
      return FolderFile(name: name, stamp: FileStamp(inode: inode, size: size, modified: modified))
    }
  }
}
