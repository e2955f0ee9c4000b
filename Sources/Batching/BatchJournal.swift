// The memory of a batcher: a file to which it appends lines before and after it publishes batches. A line counts when its end is
// there; a torn last line is a crash before that step.

import FileSystem
import Glibc
import JSON

package final class BatchJournal {
  /// The size from which the journal is written anew, in bytes.
  private static let roomy = 1 << 20
  private static let largest = 1 << 30

  private let path: String
  /// Names of pictures that are known after their batch.
  private let remembers: Int
  private var file: AppendFile?
  /// The size at the last rewriting.
  private var sizeBefore = 0
  private var isCompact = false

  /// Batches that were begun and not ended.
  private(set) var unfinished: [BatchRecord] = []
  /// Files in the folder that batches have.
  private(set) var taken: [String: FileStamp] = [:]
  /// The sessions that go on, by their streams.
  private(set) var sessions: [String: OpenSession] = [:]
  /// The names of the copies in `held/`, of versions of files that are in no batch.
  private(set) var held: [FolderFile: (copy: String, version: HeldVersion)] = [:]
  /// The names of the last pictures in batches.
  private(set) var recent: [String] = []

  /// Reads the journal; the caller holds the lock of its directory.
  convenience init(_ path: String, remembers: Int) throws(DiskError) {
    try self.init(reading: path, remembers: remembers)
    unlink(temporary)
  }

  /// Reads a journal that another process may write.
  init(reading path: String, remembers: Int = 0) throws(DiskError) {
    (self.path, self.remembers) = (path, remembers)
    let bytes = try DurableFile.contents(of: path, limit: Self.largest) ?? []
    for line in bytes.split(separator: UInt8(ascii: "\n")) {
      guard let json = try? JSONParser.parse(Array(line)), let line = JournalLine(json) else { continue }
      apply(line)
    }
  }

  /// Whether there are pictures of a session, or it goes on.
  func concerns(_ session: String) -> Bool {
    sessions.values.contains { $0.name == session } || held.values.contains { $0.version.session == session }
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

  /// Whether the journal should be written anew: once after the start if it has files, and when it has grown much.
  var isLarge: Bool { !isCompact && !taken.isEmpty || (file?.size ?? 0) > max(Self.roomy, 2 * sizeBefore) }

  /// Writes the journal anew, without the files that are gone.
  ///
  /// - Parameter folder: the one of the files; nil if they are all in `held/`.
  func compact(in folder: Directory?) throws(DiskError) {
    if let folder { forgetGone(in: folder) }
    try rewrite(adding: [])
    isCompact = true
  }

  private func forgetGone(in folder: Directory) {
    let places = Dictionary(grouping: taken) { $0.key.contains("/") ? $0.key.prefix { $0 != "/" } : "" }
    for (place, files) in places {
      let gone = files.filter { folder.sourceStamp(of: $0.key) != $0.value }
      // An empty mount point: the files come back with the mount.
      if gone.count == files.count, Self.isEmpty(folder.path + "/" + place) { continue }
      for (name, _) in gone { taken[name] = nil }
    }
  }

  private static func isEmpty(_ folder: String) -> Bool {
    (try? Directory(opening: folder).entries(limit: 1).isEmpty) ?? true
  }

  private func rewrite(adding added: [JournalLine]) throws(DiskError) {
    let files = taken.map { FolderFile(name: $0.key, stamp: $0.value) }.sorted { $0.name < $1.name }
    var lines = sessions.map { JournalLine.session($0.key, $0.value) }
    // Lines of a bounded length.
    lines += stride(from: 0, to: files.count, by: 1_000).map { .taken(Array(files[$0..<min($0 + 1_000, files.count)])) }
    if !recent.isEmpty { lines.append(.recent(recent)) }
    lines += unfinished.map(JournalLine.batch) + held.values.map { .held($0.copy, $0.version) } + added
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
      sessions[record.stream] = record.session
      for file in record.files { held[file] = nil }
      remember(record.files.map(\.name))
    case .done(let name, let kept):
      unfinished.removeAll { $0.batch == name }
      for file in kept { taken[file.name] = file.stamp }
    case .taken(let files): for file in files { taken[file.name] = file.stamp }
    case .session(let stream, let session): sessions[stream] = session
    case .held(let name, let version): held[version.file] = (name, version)
    case .recent(let names): remember(names)
    }
  }

  private func remember(_ names: [String]) {
    guard remembers > 0 else { return }
    recent += names
    // Seldom, because it moves all of them.
    if recent.count > 2 * remembers { recent.removeFirst(recent.count - remembers) }
  }
}
