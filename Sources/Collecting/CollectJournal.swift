// The memory of a collector: a file to which it appends lines before and after it publishes batches. A line counts when its end is
// there; a torn last line is a crash before that step.

import FileSystem
import Glibc
import JSON

final class CollectJournal {
  /// The size from which the journal is written anew, in bytes.
  private static let roomy = 1 << 20
  private static let largest = 1 << 30

  private let path: String
  private var file: AppendFile?
  /// The size at the last rewriting.
  private var sizeBefore = 0
  private var isCompact = false

  /// Batches that were begun and not ended.
  private(set) var unfinished: [CollectRecord] = []
  /// Files in the folder that batches have.
  private(set) var taken: [String: FileStamp] = [:]
  /// The sessions that go on.
  private(set) var sessions: [CollectedGroup: CollectedSession] = [:]
  /// The names of the copies beside the journal, of versions of files that are in no batch.
  private(set) var held: [FolderFile: String] = [:]

  /// Reads the journal; the caller holds the lock of its directory.
  init(_ path: String) throws(DiskError) {
    self.path = path
    unlink(temporary)
    let bytes = try DurableFile.contents(of: path, limit: Self.largest) ?? []
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      guard let json = try? JSONParser.parse(Array(line)), let line = JournalLine(json) else { continue }
      apply(line)
    }
  }

  private var temporary: String { path + ".new" }

  /// Appends lines. After a failure they may or may not be there: append the same lines again.
  ///
  /// - Parameter isDurable: whether they are synced; else they survive the process, not a power cut.
  func append(_ lines: [JournalLine], isDurable: Bool = true) throws(DiskError) {
    guard let file else {
      try rewrite(adding: lines)
      return
    }
    try file.append(lines.flatMap(\.bytes), isDurable: isDurable)
    lines.forEach(apply)
  }

  /// Forgets a copy that is gone.
  func forget(held file: FolderFile) { held[file] = nil }

  /// Whether the journal should be written anew: once after the start, and when it has grown much.
  var isLarge: Bool { !isCompact || (file?.size ?? 0) > max(Self.roomy, 2 * sizeBefore) }

  /// Writes the journal anew, without the files that are gone.
  ///
  /// - Parameter folder: the watched one.
  func compact(in folder: Directory) throws(DiskError) {
    let places = Dictionary(grouping: taken) { $0.key.contains("/") ? $0.key.prefix { $0 != "/" } : "" }
    for (place, files) in places {
      let gone = files.filter { folder.sourceStamp(of: $0.key) != $0.value }
      // An empty mount point: the files come back with the mount.
      if gone.count == files.count, Self.isEmpty(folder.path + "/" + place) { continue }
      for (name, _) in gone { taken[name] = nil }
    }
    try rewrite(adding: [])
    isCompact = true
  }

  private static func isEmpty(_ folder: String) -> Bool {
    (try? Directory(opening: folder).entries(limit: 1).isEmpty) ?? true
  }

  private func rewrite(adding added: [JournalLine]) throws(DiskError) {
    let files = taken.map { FolderFile(name: $0.key, stamp: $0.value) }.sorted { $0.name < $1.name }
    var lines = sessions.map { JournalLine.session($0.key, $0.value) }
    // Lines of a bounded length.
    lines += stride(from: 0, to: files.count, by: 1_000).map { .taken(Array(files[$0..<min($0 + 1_000, files.count)])) }
    lines += unfinished.map(JournalLine.batch) + held.map { .held($0.value, $0.key) } + added
    let bytes = lines.flatMap(\.bytes)
    file = nil
    try DurableFile.replace(path, bytes, temporary: temporary)
    try Directory(opening: DurableFile.parentDirectory(of: path)).sync()
    file = try AppendFile(path, size: bytes.count)
    sizeBefore = bytes.count
    added.forEach(apply)
  }

  private func apply(_ line: JournalLine) {
    switch line {
    case .batch(let record):
      unfinished.removeAll { $0.batch == record.batch }
      unfinished.append(record)
      sessions[record.group] = record.isFinal ? nil : record.session
      for file in record.files { held[file] = nil }
    case .done(let name, let kept):
      unfinished.removeAll { $0.batch == name }
      for file in kept { taken[file.name] = file.stamp }
    case .taken(let files): for file in files { taken[file.name] = file.stamp }
    case .session(let group, let session): sessions[group] = session
    case .held(let name, let file): held[file] = name
    }
  }
}
