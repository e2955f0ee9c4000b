// Files of a session that has ended, in an object store. They are made of a copy, and written once.

import FileSystem
import FrameBatches

extension ObjectStore {
  package func export(
    _ names: [String], of id: SessionID, cancellation: Cancellation,
    make: (_ session: String, _ name: String, _ target: String) throws -> Bool
  ) throws -> [ExportedFile]? {
    let session = session(id)
    let there = try names.map { try objects.head(session.exportKey($0))?.size }
    let known = Dictionary(zip(names, there).compactMap { name, size in size.map { (name, $0) } }) { first, _ in first }
    guard known.count < names.count else { return names.map { ExportedFile(name: $0, bytes: known[$0] ?? 0) } }
    guard try session.published() != nil else { return nil }
    let scratch = Staging.Scratch(in: staging)
    defer { scratch.remove() }
    try scratch.make()
    let copy = try StoredSession(id, of: StoredSessions(objects, name: name), in: scratch.path, part: .whole) { _, _ in
      try cancellation.check()
    }
    try copy.fetchVideos(of: nil) { _, _ in try cancellation.check() }
    return try names.compactMap { name in
      if let bytes = known[name] { return ExportedFile(name: name, bytes: bytes) }
      try cancellation.check()
      let file = scratch.path + "/." + name
      do {
        guard try make(copy.path, name, file) else { return nil }
      } catch {
        throw copy.renamed(error)
      }
      try session.removingObjectsIfDeleted {
        _ = try objects.put(session.exportKey(name), .file(file), ObjectKind(ofExport: name), when: .absent)
        if let deleted = try session.tombstone() { throw SessionDeleted(deleted) }
      }
      return ExportedFile(name: name, bytes: try DurableFile.size(of: file))
    }
  }
}

extension ObjectSession {
  func exportKey(_ name: String) -> String { key(ExportedFile.directory + "/" + name) }
}

extension ObjectKind {
  /// - Parameter name: of an exported file.
  init(ofExport name: String) {
    switch name.drop(while: { $0 != "." }).lowercased() {
    case ".mp4": self = .video
    case ".vtt": self = .captions
    case ".jsonl": self = .text
    case ".jpg", ".jpeg": self = .picture
    default: self = .archive
    }
  }
}
