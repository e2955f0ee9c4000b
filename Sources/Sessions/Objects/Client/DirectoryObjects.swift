// Objects as files below a directory: the key of an object is its path. A write is a draft that gets its name under the lock of its
// directory, so a reader finds the old file or the new one, whole, and a condition holds until the write is done.

import FileSystem
import Glibc

/// A directory as an object store, for several threads and processes.
///
/// Writes and removals survive a power cut. Directories are made when a key needs them, and removed when they are empty. Links, and
/// files whose names are not UTF-8, are no objects. Conditions hold where the file system has locks.
package struct DirectoryObjects: ObjectClient {
  private let root: String

  /// The maximum number of objects in a list.
  private static let listCount = 1_000
  /// Milliseconds after which a lock is given up: a process that holds it is stopped.
  private static let lockMs = 30_000
  /// The number of times that a directory is made for a write.
  private static let attempts = 100
  /// Directories that lie deeper are left out of lists.
  private static let maximumDepth = 32

  /// - Parameter root: made when the first object is written.
  package init(_ root: String) { self.root = root }

  package func get(_ key: String, limit: Int) throws -> StoredObject? {
    guard let file = try file(key) else { return nil }
    guard case .bytes(let bytes) = try readRegularFile(file.descriptor, path: path(of: key), limit: limit) else {
      throw ObjectTooLarge(key: key, limit: limit)
    }
    return StoredObject(bytes: bytes, tag: file.objectTag)
  }

  package func get(_ key: String, in range: Range<Int>) throws -> StoredObject? {
    guard let file = try file(key), file.size >= range.upperBound else { return nil }
    let bytes = FileBytes(file).bytes(at: range.lowerBound, range.count)
    guard bytes.count == range.count else { throw DiskError("read", try path(of: key), code: EIO) }
    return StoredObject(bytes: Array(bytes), tag: file.objectTag)
  }

  package func download(_ key: String, to path: String, limit: Int) throws -> ObjectTag? {
    guard let file = try file(key) else { return nil }
    guard file.size <= limit else { throw ObjectTooLarge(key: key, limit: limit) }
    try Self.copy(FileBytes(file), to: path, isDurable: false)
    return file.objectTag
  }

  package func head(_ key: String) throws -> ObjectInfo? {
    try file(key).map { file in
      ObjectInfo(key: key, size: file.size, tag: file.objectTag, ageS: Self.ageS(file.stamp, atMs: WallClock.nowMs))
    }
  }

  private static func ageS(_ stamp: FileStamp, atMs nowMs: Int64) -> Int {
    Int(max(0, nowMs - stamp.modified / 1_000_000) / 1_000)
  }

  package func put(
    _ key: String, _ body: ObjectBody, _ kind: ObjectKind, when condition: PutCondition
  ) throws -> ObjectTag? {
    let target = try path(of: key)
    let folder = DurableFile.parentDirectory(of: target)
    // Another process may remove an empty directory that was just made. A link is there each time.
    for _ in 0..<Self.attempts {
      try DurableFile.makeDirectories(folder)
      let written: ObjectTag?? = try locked(folder) { directory in
        switch condition {
        case .always: break
        case .absent: if try file(key) != nil { return nil }
        case .matching(let tag): if try file(key)?.objectTag != tag { return nil }
        }
        let draft = "\(folder)/.\(WorkerID()).part"
        switch body {
        case .bytes(let bytes): try DurableFile.create(draft, bytes)
        case .file(let source): try Self.copy(FileBytes(opening: source), to: draft, isDurable: true)
        }
        do {
          try check("rename", target) { rename(draft, target) }
        } catch {
          unlink(draft)
          throw error
        }
        try directory.sync()
        return directory.stamp(of: lastComponent(of: target)).map { ObjectTag($0.tag) }
      }
      if let written { return written }
    }
    throw DiskError("open", folder, code: ENOTDIR)
  }

  package func copy(_ key: String, _ tag: ObjectTag, to target: String) throws -> Bool {
    guard try file(key)?.objectTag == tag else { return false }
    return try put(target, .file(path(of: key)), .archive, when: .always) != nil
  }

  package func delete(_ key: String, _ tag: ObjectTag?) throws {
    let target = try path(of: key)
    let folder = DurableFile.parentDirectory(of: target)
    let isEmpty = try locked(folder) { directory in
      if let tag, try file(key)?.objectTag != tag { return false }
      try check("unlink", target) { unlink(target) == 0 || errno == ENOENT ? 0 : -1 }
      try directory.sync()
      return folder != root
    }
    if isEmpty == true { rmdir(folder) }
  }

  package func list(_ prefix: String, after key: String?) throws -> [ObjectInfo] {
    let folder = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
    var listing = Listing(prefix: prefix, last: key)
    if let directory = try open(folder) { try listing.visit(directory, folder) }
    return listing.found
  }

  // MARK: - Paths

  /// Whether a name is that of a file that is not written yet, or whose writer died.
  private static func isDraft(_ name: some StringProtocol) -> Bool { name.hasPrefix(".") && name.hasSuffix(".part") }

  /// - Throws: ``Failure`` for a key that is no path below the directory.
  private func path(of key: String) throws -> String {
    let parts = key.split(separator: "/", omittingEmptySubsequences: false)
    guard key.utf8.count <= 1_024, parts.allSatisfy({ Self.isName($0) }) else {
      throw Failure(.input, "", "\(root)/\(printableName(Array(key.utf8.prefix(200))))", "no path below \(root)")
    }
    return root + "/" + key
  }

  private static func isName(_ part: Substring) -> Bool {
    (1...255).contains(part.utf8.count) && part != "." && part != ".." && !part.utf8.contains(0)
      && !isDraft(part)
  }

  /// Opens a directory below the root without following links below it.
  ///
  /// - Returns: nil if there is none.
  private func open(_ folder: String) throws -> Directory? {
    do {
      return try folder.split(separator: "/").reduce(Directory(opening: root)) { parent, name in
        guard Self.isName(name) else { throw DiskError("open", root + "/" + folder, code: ENOENT) }
        return try Directory(opening: String(name), in: parent)
      }
    } catch let error as DiskError where [ENOENT, ENOTDIR, ELOOP].contains(error.code) {
      return nil
    }
  }

  /// - Returns: nil if there is no such file.
  private func file(_ key: String) throws -> OpenFile? {
    let path = try path(of: key)
    let folder = DurableFile.parentDirectory(of: key)
    guard let directory = try open(folder == "." ? "" : folder) else { return nil }
    return try OpenFile(lastComponent(of: path), in: directory)
  }

  /// Runs `body` with a directory locked.
  ///
  /// - Returns: nil if there is no directory, or it was removed meanwhile.
  private func locked<R>(_ folder: String, _ body: (Directory) throws -> R) throws -> R? {
    let deadlineMs = MonotonicClock.milliseconds() + Self.lockMs
    guard let directory = try open(String(folder.dropFirst(root.utf8.count))) else { return nil }
    var pause: UInt32 = 200
    while try !directory.lock() {
      guard MonotonicClock.milliseconds() < deadlineMs else { throw DiskError("flock", folder, code: ETIMEDOUT) }
      usleep(pause)
      pause = min(2 * pause, 20_000)
    }
    guard let named = try open(String(folder.dropFirst(root.utf8.count))),
      named.stamp(of: ".")?.inode == directory.stamp(of: ".")?.inode
    else { return nil }
    return try body(directory)
  }

  private static func copy(_ source: some ByteSource, to path: String, isDurable: Bool) throws(DiskError) {
    let file = try OutputFile(creating: path)
    do throws(DiskError) {
      var offset = 0
      while offset < source.count {
        let piece = source.bytes(at: offset, min(1 << 20, source.count - offset))
        guard !piece.isEmpty else { throw DiskError("read", path, code: EIO) }
        try file.write(piece, at: offset)
        offset += piece.count
      }
      if isDurable { try file.finish() }
    } catch {
      unlink(path)
      throw error
    }
  }

  /// A walk over the files below a directory, in the order of their keys.
  private struct Listing {
    let prefix: String
    let last: String?
    var found: [ObjectInfo] = []
    private let nowMs = WallClock.nowMs
    private var depth = 0

    init(prefix: String, last: String?) { (self.prefix, self.last) = (prefix, last) }

    mutating func visit(_ directory: Directory, _ folder: String) throws {
      depth += 1
      defer { depth -= 1 }
      // The keys in a directory come where its name with a slash does.
      let keys = try directory.entries().filter { [.file, .directory].contains($0.kind) && !isDraft($0.name) }
        .compactMap { entry in String(validating: entry.bytes, as: UTF8.self).map { (entry, folder + $0) } }
        .map { entry, path in (entry: entry, key: entry.kind == .directory ? path + "/" : path) }
        .sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      for (entry, key) in keys where key.utf8.starts(with: prefix.utf8) {
        guard found.count < listCount else { return }
        if entry.kind == .file {
          guard isNext(key), let stamp = try directory.checkedStamp(of: entry.name) else { continue }
          found.append(
            ObjectInfo(
              key: key, size: Int(stamp.size), tag: ObjectTag(stamp.tag),
              ageS: DirectoryObjects.ageS(stamp, atMs: nowMs), modifiedMs: stamp.modified / 1_000_000))
        } else if depth < maximumDepth, isNext(key) || last?.utf8.starts(with: key.utf8) == true {
          try visit(Directory(entry, in: directory), key)
        }
      }
    }

    private func isNext(_ key: String) -> Bool { last.map { $0.utf8.lexicographicallyPrecedes(key.utf8) } ?? true }
  }
}

extension OpenFile {
  fileprivate var objectTag: ObjectTag { ObjectTag(stamp.tag) }
}
