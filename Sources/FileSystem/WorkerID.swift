// The identity of a worker, readable in the name of its directory.

import Glibc
import Synchronization

/// One run of a worker: host, process, moment. No two are alike.
package struct WorkerID: Sendable, CustomStringConvertible {
  package let description: String

  package init() {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    let moment = UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    let count = WorkerID.made.add(1, ordering: .relaxed).newValue
    description = "\(WorkerID.host)~\(getpid())~\(String(moment, radix: 36))\(count)"
  }

  private static let made = Atomic<Int>(0)

  /// The host's name, as far as it can stand in a file name.
  package static let host: String = {
    var name = [CChar](repeating: 0, count: 256)
    gethostname(&name, 255)
    let text = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    return String(text.prefix(64).map { $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0)) ? $0 : "-" })
  }()

  /// Whether the process that a worker of this host names is gone.
  package static func isProcessGone(_ name: String) -> Bool {
    let parts = name.split(separator: "~")
    guard parts.count == 3, let process = pid_t(parts[1]) else { return false }
    return kill(process, 0) != 0 && errno == ESRCH
  }

  package static func isOnThisHost(_ name: String) -> Bool {
    name.hasPrefix(host + "~") || name.hasPrefix("." + host + "~")
  }
}
