// The lock of a session: a lock on its directory, which the kernel releases when the process ends. Nothing is published, removed or
// updated in a session without it.

import FileSystem
import FrameBatches
import Glibc

/// A session's lock. No other worker publishes there until it is consumed.
struct SessionLock: ~Copyable {
  private let descriptor: Int32

  /// Takes over a locked file.
  fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// Releases the lock. An error that is thrown before this releases it, too.
  consuming func release() {}
}

extension SessionDirectory {
  /// Runs `body` under the session's lock.
  ///
  /// - Parameter cancellation: asked while another worker has the lock, and once it is ours.
  /// - Throws: ``Cancelled``.
  @discardableResult
  package func locked<R>(_ cancellation: Cancellation = .never, _ body: () throws -> R) throws -> R {
    let lock = try lock(cancellation)
    let result = try body()
    lock.release()
    return result
  }

  /// Like ``locked(_:_:)``, but fails if another process has the lock, and creates no directory.
  ///
  /// - Returns: nil if there is no such session.
  /// - Throws: ``SessionHeld``.
  package func lockedIfFree<R>(_ body: () throws -> R) throws -> R? {
    guard let directory = try openIfThere() else { return nil }
    let seized = try lock(directory) { file, name in
      if flock(file, LOCK_EX | LOCK_NB) != 0 { throw errno == EWOULDBLOCK ? SessionHeld() : DiskError("flock", name) }
    }
    guard let lock = seized else { return nil }
    let result = try body()
    lock.release()
    return result
  }

  /// Takes the session's lock. Creates the directory if it is missing.
  ///
  /// - Throws: ``SessionDeleted``: nothing is published in a deleted session; ``Cancelled``.
  func lock(_ cancellation: Cancellation = .never) throws -> SessionLock {
    let tombstones = SessionTombstones(output: DurableFile.parentDirectory(of: path))
    while true {
      try tombstones.requireNone(of: session)
      try DurableFile.makeDirectories(path)
      guard let directory = try openIfThere(), let lock = try waitForLock(directory, cancellation) else { continue }
      do {
        // It may have been deleted while we waited. From here on `delete` waits for us.
        try tombstones.requireNone(of: session)
        return lock
      } catch let deleted as SessionDeleted {
        // If it is empty, it is ours.
        rmdir(path)
        throw deleted
      }
    }
  }

  /// Takes the lock of a session that is there, to remove it.
  ///
  /// - Returns: nil if there is no such session.
  /// - Throws: ``Cancelled``.
  func lockExisting(_ cancellation: Cancellation) throws -> SessionLock? {
    while let directory = try openIfThere() {
      if let lock = try waitForLock(directory, cancellation) { return lock }
    }
    return nil
  }

  private func openIfThere() throws(DiskError) -> Int32? {
    let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
    if directory < 0 && errno == ENOENT { return nil }
    guard directory >= 0 else { throw DiskError("open", path) }
    return directory
  }

  /// - Returns: nil if the session was removed meanwhile.
  private func waitForLock(_ directory: Int32, _ cancellation: Cancellation) throws -> SessionLock? {
    try lock(directory) { file, name in
      // A worker holds it while files are synced; a stopped process holds it for ever.
      var pause: UInt32 = 500
      while flock(file, LOCK_EX | LOCK_NB) != 0 {
        guard errno == EWOULDBLOCK || errno == EINTR else { throw DiskError("flock", name) }
        try cancellation.check()
        usleep(pause)
        pause = min(2 * pause, 50_000)
      }
      try cancellation.check()
    }
  }

  /// Locks the open directory, or a file in it if the file system has no locks on directories.
  ///
  /// - Returns: nil if the session was removed meanwhile.
  private func lock(_ directory: Int32, _ seize: (Int32, String) throws -> Void) throws -> SessionLock? {
    func lock(_ file: Int32, _ name: String) throws -> SessionLock? {
      let lock = SessionLock(file)
      try seize(file, name)
      // The lock may be on a file that was removed while we waited.
      guard try isSame(file, name) else { return nil }
      return lock
    }
    do {
      return try lock(directory, path)
    } catch let failure as DiskError where failure.saysNoLocks {
      let name = path + "/.lock"
      let file = try check("open", name) { open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o644) }
      return try lock(file, name)
    }
  }

  /// Throws if the disk does not answer: a wrong answer would make us wait for our own lock.
  private func isSame(_ descriptor: Int32, _ path: String) throws(DiskError) -> Bool {
    var (opened, named) = (stat(), stat())
    try check("stat", path) { fstat(descriptor, &opened) }
    try check("stat", path) { lstat(path, &named) == 0 || errno == ENOENT ? 0 : -1 }
    return (opened.st_ino, opened.st_dev) == (named.st_ino, named.st_dev)
  }
}
