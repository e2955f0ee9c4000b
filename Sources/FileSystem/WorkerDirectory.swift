// A directory that belongs to one running process: `PARENT/<worker>/`, with a file `alive` in it. The process holds a lock on that
// file, which the kernel lets go of when the process ends, however it ends: a process that can take the lock on the same host may
// take over what lies beside it. Hosts that share a spool may not see each other's locks: for them a number in the file goes up
// every few seconds. A wrong answer costs work done twice, never data: publishing is idempotent.

import CLinux
import Glibc
import Synchronization

package final class WorkerDirectory: Sendable {
  package let path: String
  private let lock: Int32
  private let shutdown: PeriodicThread
  private let hasLeft = Atomic(false)

  /// Makes the directory; it appears under its name only once the lock is held.
  package init(in parent: String, worker: WorkerID) throws(DiskError) {
    try DurableFile.makeDirectories(parent)
    let (path, hidden) = (parent + "/" + worker.description, parent + "/." + worker.description)
    try check("mkdir", hidden) { mkdir(hidden, 0o755) }
    let lock = try check("open", hidden) { open(hidden + "/alive", O_RDWR | O_CREAT | O_CLOEXEC, 0o644) }
    (self.path, self.lock) = (path, lock)
    do {
      try check("flock", hidden) { flock(lock, LOCK_EX | LOCK_NB) }
      try check("rename", path) { rename(hidden, path) }
      shutdown = try Pulse.start(in: lock)
    } catch {
      close(lock)
      throw error
    }
  }

  deinit { leave() }

  /// Whether another process took it for a dead worker's and removed it; not so when all of the file system is gone, nor where it
  /// does not tell: an NFS server that has taken its export away refuses this, while what is above it may still be cached.
  package var isLost: Bool {
    DurableFile.isReachableDirectory(DurableFile.parentDirectory(of: path))
      && (try? DurableFile.isThere(path + "/alive")) == false
  }

  /// Removes the directory when nothing is left in it.
  package func remove() {
    // Closed before: what is open cannot be removed over NFS.
    leave()
    unlink(path + "/alive")
    rmdir(path)
  }

  private func leave() {
    guard !hasLeft.exchange(true, ordering: .relaxed) else { return }
    shutdown.stop()
    close(lock)
  }

  /// The directories in `parent` whose process on this host is gone, each locked by us while `body` empties it.
  ///
  /// - Parameter body: takes over what is in there; the directory goes when nothing is left.
  /// - Returns: what went wrong with single ones; the others are not held up.
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
        // Gone while we looked: its owner has left, or another process was faster.
        if DurableFile.exists(path) { failures.append(error) }
      }
    }
    return failures
  }

  /// The directories in `parent` that belong to processes of other hosts, by their paths.
  package static func ofOtherHosts(in parent: String) throws(DiskError) -> [String] {
    try Directory(opening: parent).entries()
      .filter { $0.kind == .directory && !WorkerID.isOnThisHost($0.name) }.map { parent + "/" + $0.name }
  }

  /// Does something with the directory of a process of this host, locked, unless the process is there.
  package static func withLockIfOwnerDead(_ path: String, _ body: () throws -> Void) throws {
    let name = lastComponent(of: path)
    // Not under its final name yet: nothing is in it, and it has no lock to ask.
    if name.hasPrefix(".") && !WorkerID.isProcessGone(name) { return }
    let lock = open(path + "/alive", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    if lock < 0 && errno != ENOENT { throw DiskError("open", path + "/alive") }
    defer { if lock >= 0 { close(lock) } }
    // A directory under its final name without the file is one that is being removed.
    if lock >= 0, try !seize(lock, path + "/alive") { return }
    try body()
  }

  /// Takes the lock of a process that is gone.
  ///
  /// - Returns: whether it is ours; not so when the process, or the worker that takes over from it, has it.
  private static func seize(_ lock: Int32, _ path: String) throws(DiskError) -> Bool {
    for _ in 0..<1_000 {
      if flock(lock, LOCK_EX | LOCK_NB) == 0 { return true }
      guard errno == EWOULDBLOCK else { throw DiskError("flock", path) }
      // A reader takes a shared lock for a moment, so that it is not taken for the owner.
      guard flock(lock, LOCK_SH | LOCK_NB) == 0 else { return false }
      flock(lock, LOCK_UN)
      usleep(UInt32.random(in: 500...3_000))
    }
    throw DiskError("flock", path, code: EWOULDBLOCK)
  }

  /// Whether the process of this host that this directory belongs to is there; a worker that takes over from it counts as it.
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

/// The sign of life of a process: a number in a file that changes every three seconds, a short time against any lease.
private enum Pulse {
  static func start(in file: Int32) throws(DiskError) -> PeriodicThread {
    let isRemote = clinux_is_remote(file) != 0
    @Sendable func beat() {
      // Always as many bytes: once they are there, a full disk does not stop it on most file systems.
      var text = Array(String(MonotonicClock.milliseconds() + 1_000_000_000_000).utf8)
      pwrite(file, &text, text.count, 0)
      if isRemote { fdatasync(file) }
    }
    beat()
    return try PeriodicThread("alive", everyMs: 3_000, beat)
  }
}
