// The counters of a worker, in a file of its directory, for status commands. Nothing depends on it.

import Encoding
import FileSystem
import Glibc
import JSON

/// Counts since a worker has started.
package struct WorkerCounters: Sendable, Equatable {
  /// Batches, of these the ones that had been published before, and those in quarantine.
  package var published = 0
  package var duplicates = 0
  package var quarantined = 0
  package var segments = 0
  package var frames = 0
  /// Frames that could not be shown.
  package var refused = 0
  /// Batches published within the last minute.
  package var perMinute = 0
  /// For how long it has been running, in seconds.
  package var runningS = 0

  private static let file = "tally"
  private static let format = "worker-tally/1"

  package init() {}

  /// Reads the counters of the worker with this directory; nil if there are none that can read.
  package init?(in directory: String) {
    guard let bytes = try? DurableFile.contents(of: directory + "/" + Self.file, limit: 4_096) else { return nil }
    self.init(json: bytes)
  }

  /// nil for what is no tally.
  package init?(json: [UInt8]) {
    guard let members = try? JSONParser.parse(json).object, members["format"]?.string == Self.format else { return nil }
    func number(_ name: String) -> Int { members[name]?.integer.map { Int($0) } ?? 0 }
    (published, duplicates, quarantined) = (number("published"), number("duplicates"), number("quarantined"))
    (segments, frames, refused) = (number("segments"), number("frames"), number("refused"))
    (perMinute, runningS) = (number("perMinute"), number("runningS"))
  }

  /// Says it. Readers see the new file or the old one.
  package func write(to directory: String) throws(DiskError) {
    let draft = directory + "/" + Self.file + ".part"
    unlink(draft)
    try check("open", draft) {
      let file = Glibc.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
      guard file >= 0 else { return -1 }
      defer { close(file) }
      let bytes = json.bytes()
      return Glibc.write(file, bytes, bytes.count) == bytes.count ? 0 : -1
    }
    try check("rename", draft) { rename(draft, directory + "/" + Self.file) }
  }

  package static func remove(from directory: String) {
    for name in [file, file + ".part"] { unlink(directory + "/" + name) }
  }

  package var json: JSONValue {
    .object([
      "format": .string(Self.format), "published": .number(published), "duplicates": .number(duplicates),
      "quarantined": .number(quarantined), "segments": .number(segments), "frames": .number(frames),
      "refused": .number(refused), "perMinute": .number(perMinute), "runningS": .number(runningS),
    ])
  }
}
