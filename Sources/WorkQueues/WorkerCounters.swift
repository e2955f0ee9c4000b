import FileSystem
import Glibc
import JSON

/// Counts since a worker has started, in a file of its directory for status commands. Nothing depends on it.
package struct WorkerCounters: Sendable {
  /// Batches published for the first time.
  package var published = 0
  /// Batches that had been published before.
  package var duplicates = 0
  package var quarantined = 0
  /// Batches of which all sessions were deleted.
  package var refusedBatches = 0
  package var segments = 0
  package var frames = 0
  /// Frames that could not be shown.
  package var refused = 0
  /// Batches published within the last minute.
  package var perMinute = 0
  /// Seconds since the start.
  package var runningS = 0

  private static let file = "tally"
  private static let format = "worker-tally/1"
  private static let members: [(name: String, path: WritableKeyPath<WorkerCounters, Int> & Sendable)] = [
    ("published", \.published), ("duplicates", \.duplicates), ("quarantined", \.quarantined),
    ("refusedBatches", \.refusedBatches), ("segments", \.segments),
    ("frames", \.frames), ("refused", \.refused), ("perMinute", \.perMinute), ("runningS", \.runningS),
  ]

  package init() {}

  /// Reads the counters of the worker with this directory; nil if there are none, or they cannot be read.
  init?(in directory: String) {
    guard let bytes = try? DurableFile.contents(of: directory + "/" + Self.file, limit: 4_096) else { return nil }
    self.init(json: bytes)
  }

  /// Returns nil for other JSON.
  package init?(json: [UInt8]) {
    guard let members = try? JSONParser.parse(json).object, members["format"]?.string == Self.format else { return nil }
    for (name, path) in Self.members { self[keyPath: path] = members[name]?.integer.map { Int($0) } ?? 0 }
  }

  /// Replaces the file atomically.
  func write(to directory: String) throws(DiskError) {
    let draft = directory + "/" + Self.file + ".part"
    unlink(draft)
    try DurableFile.create(draft, json.bytes(), isDurable: false)
    try check("rename", draft) { rename(draft, directory + "/" + Self.file) }
  }

  static func remove(from directory: String) {
    for name in [file, file + ".part"] { unlink(directory + "/" + name) }
  }

  package var json: JSONValue {
    let counts = Self.members.map { ($0.name, JSONValue.number(self[keyPath: $0.path])) }
    return .object(Dictionary(uniqueKeysWithValues: [("format", .string(Self.format))] + counts))
  }
}
