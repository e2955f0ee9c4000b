// The directory of one running process: `PARENT/<worker>/`, with a file `alive` in it. The process holds a lock on that
// file. The kernel releases the lock when the process ends, however it ends: another process of the same host that gets the
// lock takes the directory over. Hosts that share a spool may not see each other's locks: for them the process writes a
// number to the file every few seconds. A wrong answer costs work done twice, never data: publishing is idempotent.

import CLinux
import Glibc
import Synchronization

package final class WorkerDirectory: Sendable {
  package let path: String
  private let lock: Int32
  private let heartbeat: PeriodicThread
  private let hasLeft = Mutex(false)

  /// Makes the directory under a hidden name, takes the lock, and then renames the directory.
  package init(in parent: String, worker: WorkerID) throws(DiskError) {
    try DurableFile.makeDirectories(parent)
    let (path, hidden) = (parent + "/" + worker.description, parent + "/." + worker.description)
    try check("mkdir", hidden) { mkdir(hidden, 0o755) }
    let lock = try check("open", hidden) { open(hidden + "/alive", O_RDWR | O_CREAT | O_CLOEXEC, 0o644) }
    (self.path, self.lock) = (path, lock)
    do {
      try check("flock", hidden) { flock(lock, LOCK_EX | LOCK_NB) }
      try check("rename", path) { rename(hidden, path) }
      heartbeat = try Self.startHeartbeat(in: lock)
    } catch {
      close(lock)
      throw error
    }
  }

  /// Writes a number to `alive` every three seconds, a short time against any lease.
  private static func startHeartbeat(in file: Int32) throws(DiskError) -> PeriodicThread {
    let isRemote = clinux_is_remote(file) != 0
    @Sendable func beat() {
      // The same number of bytes each time: most file systems overwrite them even on a full disk.
      var text = Array(String(MonotonicClock.milliseconds() + 1_000_000_000_000).utf8)
      pwrite(file, &text, text.count, 0)
      if isRemote { fdatasync(file) }
    }
    beat()
    return try PeriodicThread("alive", everyMs: 3_000, beat)
  }

  deinit { leave() }

  /// Whether another process took this one for dead and removed the directory. False when the whole file system is gone or the
  /// check fails: an NFS server that has withdrawn its export refuses the check, while the client may still cache the parent.
  package var isLost: Bool {
    DurableFile.isReachableDirectory(DurableFile.parentDirectory(of: path))
      && (try? DurableFile.isThere(path + "/alive")) == false
  }

  /// Removes the directory if it is empty but for `alive`.
  package func remove() {
    // Close the file first: NFS does not remove an open file.
    leave()
    unlink(path + "/alive")
    rmdir(path)
  }

  private func leave() {
    hasLeft.withLock { hasLeft in
      guard !hasLeft else { return }
      hasLeft = true
      heartbeat.stop()
      close(lock)
    }
  }

  /// Makes the directory again, with its lock, if something else has removed it: a cleaner of temporary files. Only for directories whose
  /// files nobody else takes over.
  package func restore() throws(DiskError) {
    try hasLeft.withLock { (hasLeft) throws(DiskError) in
      let isThere = try DurableFile.isThere(path + "/alive")
      guard !hasLeft, !isThere else { return }
      try DurableFile.makeDirectories(path)
      let new = try check("open", path) {
        open(path + "/alive", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644)
      }
      defer { close(new) }
      try check("flock", path) { flock(new, LOCK_EX | LOCK_NB) }
      // The heartbeat goes on in the new file.
      try check("dup3", path) { clinux_duplicate(new, lock) }
    }
  }

  /// Takes over the directories in `parent` whose process on this host has ended, and removes those that are empty then.
  ///
  /// - Parameter body: takes over the contents of a directory, which is locked meanwhile.
  /// - Returns: the failures of single directories. They do not stop the others.
  package static func takeOver(in parent: String, _ body: (String) throws -> Void) throws(DiskError) -> [any Error] {
    var failures: [any Error] = []
    for entry in try Directory(opening: parent).entries() where entry.kind == .directory {
      guard WorkerID.isOnThisHost(entry.name) else { continue }
      let path = parent + "/" + entry.name
      do {
        try withLockIfOwnerDead(path) {
          try body(path)
          unlink(path + "/alive")
          rmdir(path)
        }
      } catch {
        // If it is gone, its owner has ended, or another process was faster.
        if DurableFile.exists(path) { failures.append(error) }
      }
    }
    return failures
  }

  /// Returns the paths of the directories in `parent` that belong to processes of other hosts.
  package static func ofOtherHosts(in parent: String) throws(DiskError) -> [String] {
    try Directory(opening: parent).entries()
      .filter { $0.kind == .directory && !WorkerID.isOnThisHost($0.name) }.map { parent + "/" + $0.name }
  }

  /// Calls `body` with the lock of a process of this host, unless the process is alive.
  package static func withLockIfOwnerDead(_ path: String, _ body: () throws -> Void) throws {
    let name = lastComponent(of: path)
    // A directory under its hidden name is empty, and may not have a lock yet.
    if name.hasPrefix(".") && !WorkerID.isProcessGone(name) { return }
    let lock = open(path + "/alive", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    if lock < 0 && errno != ENOENT { throw DiskError("open", path + "/alive") }
    defer { if lock >= 0 { close(lock) } }
    // A directory under its final name without the file is being removed.
    if lock >= 0, try !seize(lock, path + "/alive") { return }
    try body()
  }

  /// Takes the lock of a process that has ended.
  ///
  /// - Returns: false if the process, or a worker that takes over from it, holds the lock.
  private static func seize(_ lock: Int32, _ path: String) throws(DiskError) -> Bool {
    for _ in 0..<1_000 {
      if flock(lock, LOCK_EX | LOCK_NB) == 0 { return true }
      guard errno == EWOULDBLOCK else { throw DiskError("flock", path) }
      // `isAlive` takes a shared lock for a moment; the owner's lock is exclusive.
      guard flock(lock, LOCK_SH | LOCK_NB) == 0 else { return false }
      flock(lock, LOCK_UN)
      usleep(UInt32.random(in: 500...3_000))
    }
    throw DiskError("flock", path, code: EWOULDBLOCK)
  }

  /// Whether the process of this host that owns a directory is alive. A worker that takes over from it counts as alive.
  package static func isAlive(_ path: String) throws(DiskError) -> Bool {
    let name = lastComponent(of: path)
    if name.hasPrefix(".") { return !WorkerID.isProcessGone(name) }
    let lock = open(path + "/alive", O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard lock >= 0 else {
      if errno == ENOENT { return false }
      throw DiskError("open", path + "/alive")
    }
    defer { close(lock) }
    if flock(lock, LOCK_SH | LOCK_NB) == 0 { return false }
    guard errno == EWOULDBLOCK else { throw DiskError("flock", path + "/alive") }
    return true
  }
}
