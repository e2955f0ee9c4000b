// A directory that belongs to one running process: `PARENT/<worker>/`. The process holds a lock on the file `alive` in
// it, which the kernel lets go of when the process ends, however it ends. Whoever can take the lock on the same host
// may take over what lies beside it. A wrong answer costs work done twice, never data: publishing is idempotent.

import Glibc
import Synchronization

public final class WorkerDirectory: Sendable {
  public let path: String
  private let lock: Int32

  /// Makes the directory; it appears under its name only once the lock is held.
  public init(in parent: String, worker: WorkerID) throws(DiskError) {
    try DurableFile.makeDirectories(parent)
    path = parent + "/" + worker.description
    let hidden = parent + "/." + worker.description
    try check("mkdir", hidden) { mkdir(hidden, 0o755) }
    lock = try check("open", hidden) { open(hidden + "/alive", O_RDWR | O_CREAT | O_CLOEXEC, 0o644) }
    do {
      try check("flock", hidden) { flock(lock, LOCK_EX | LOCK_NB) }
      try check("rename", path) { rename(hidden, path) }
    } catch {
      close(lock)
      throw error
    }
  }

  deinit { close(lock) }

  /// Removes the directory when nothing is left in it.
  public func remove() {
    unlink(path + "/alive")
    rmdir(path)
  }

  /// The directories in `parent` whose process on this host is gone, each locked by us while `body` empties it.
  ///
  /// - Parameter body: takes over what is in there; the directory goes when nothing is left.
  /// - Returns: what went wrong with single ones; the others are not held up.
  static func takeOver(in parent: String, _ body: (String) throws -> Void) throws(DiskError) -> [any Error] {
    var failures: [any Error] = []
    for entry in try Directory(opening: parent).entries() where entry.kind == .directory {
      guard WorkerID.isOnThisHost(entry.name) else { continue }
      // Not under its final name yet: nothing is in it, and it has no lock to ask.
      if entry.name.hasPrefix(".") && !WorkerID.isProcessGone(entry.name) { continue }
      let path = parent + "/" + entry.name
      let lock = open(path + "/alive", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
      if lock < 0 && errno != ENOENT {
        failures.append(DiskError("open", path + "/alive"))
        continue
      }
      defer { if lock >= 0 { close(lock) } }
      // A directory under its final name without the file is one that is being removed.
      if lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0 {
        if errno != EWOULDBLOCK { failures.append(DiskError("flock", path + "/alive")) }
        continue
      }
      do {
        try body(path)
        unlink(path + "/alive")
        rmdir(path)
      } catch {
        // Gone while we looked: its owner has left, or somebody else was faster.
        if DurableFile.exists(path) { failures.append(error) }
      }
    }
    return failures
  }
}

/// One run of a worker: host, boot, process, moment. No two are alike.
public struct WorkerID: Sendable, CustomStringConvertible {
  public let description: String

  public init() {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    let moment = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    let count = WorkerID.made.add(1, ordering: .relaxed).newValue
    description = "\(WorkerID.host)~\(getpid())~\(String(moment, radix: 36))\(count)"
  }

  private static let made = Atomic<Int>(0)

  /// The host's name, as far as it can stand in a file name.
  static let host: String = {
    var name = [CChar](repeating: 0, count: 256)
    gethostname(&name, 255)
    let text = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    return String(text.prefix(64).map { $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0)) ? $0 : "-" })
  }()

  /// Whether the process that a worker of this host names is gone.
  static func isProcessGone(_ name: String) -> Bool {
    let parts = name.split(separator: "~")
    guard parts.count == 3, let process = pid_t(parts[1]) else { return false }
    return kill(process, 0) != 0 && errno == ESRCH
  }

  static func isOnThisHost(_ name: String) -> Bool {
    name.hasPrefix(host + "~") || name.hasPrefix("." + host + "~")
  }
}
