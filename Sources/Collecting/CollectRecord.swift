import FileSystem
import JSON

/// A batch as the journal has it: its name, its source files, and the session that it continues.
struct CollectRecord: Equatable {
  let batch: String
  let group: CollectedGroup
  let session: CollectedSession
  let isFinal: Bool
  let files: [FolderFile]
}

/// A line of the journal.
enum JournalLine: Equatable {
  /// The batch is whole in its draft, which is about to be renamed into `incoming/`.
  case batch(CollectRecord)
  /// The batch is in `incoming/`, or was, and its sources are gone, but for these.
  case done(String, kept: [FolderFile])
  /// Files that batches of earlier runs have, and that are still in the folder.
  case taken([FolderFile])
  /// A session that goes on; nil after its end.
  case session(CollectedGroup, CollectedSession?)
  /// A version of a file is about to be copied to a file of this name beside the journal.
  case held(String, FolderFile)
}

extension JournalLine {
  var bytes: [UInt8] { json.bytes() + [UInt8(ascii: "\n")] }

  private var json: JSONValue {
    switch self {
    case .batch(let record):
      .object([
        "batch": .string(record.batch), "group": .string(record.group.text), "session": Self.json(record.session),
        "final": .bool(record.isFinal), "files": Self.json(record.files),
      ])
    case .done(let name, let kept): .object(["done": .string(name), "kept": Self.json(kept)])
    case .taken(let files): .object(["taken": Self.json(files)])
    case .session(let group, let session):
      .object(["group": .string(group.text), "session": session.map(Self.json) ?? .null])
    case .held(let name, let file): .object(["held": .string(name), "files": Self.json([file])])
    }
  }

  /// - Returns: nil for anything that is no line of a journal.
  init?(_ json: JSONValue) {
    guard let members = json.object else { return nil }
    if let name = members["done"]?.string {
      self = .done(name, kept: Self.files(members["kept"]))
    } else if members["taken"] != nil {
      self = .taken(Self.files(members["taken"]))
    } else if let name = members["held"]?.string {
      guard let file = Self.files(members["files"]).first, !name.contains("/") else { return nil }
      self = .held(name, file)
    } else if let group = members["group"]?.string.map(CollectedGroup.init(text:)) {
      let session = Self.session(members["session"])
      guard let name = members["batch"]?.string else {
        self = .session(group, session)
        return
      }
      guard let session, !name.contains("/"), !name.hasPrefix(".") else { return nil }
      let isFinal = members["final"]?.bool ?? false
      self = .batch(
        CollectRecord(
          batch: name, group: group, session: session, isFinal: isFinal, files: Self.files(members["files"])))
    } else {
      return nil
    }
  }

  private static func json(_ session: CollectedSession) -> JSONValue {
    .object([
      "name": .string(session.name), "lastMs": .number(session.lastMs), "endMs": .number(session.endMs),
      "intervalMs": .number(session.intervalMs),
    ])
  }

  private static func session(_ json: JSONValue?) -> CollectedSession? {
    guard let name = json?.object?["name"]?.string, let lastMs = json?.object?["lastMs"]?.integer,
      let endMs = json?.object?["endMs"]?.integer, let intervalMs = json?.object?["intervalMs"]?.integer
    else { return nil }
    return CollectedSession(name: name, lastMs: lastMs, endMs: endMs, intervalMs: intervalMs)
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
