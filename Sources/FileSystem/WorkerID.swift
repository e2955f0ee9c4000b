import Glibc
import Synchronization

/// One run of a worker: host, process, time and number, readable in the name of its directory. No two are equal.
package struct WorkerID: Sendable, CustomStringConvertible {
  package let description: String

  package init() {
    let time = String(nanoseconds(of: CLOCK_REALTIME), radix: 36)
    let count = WorkerID.made.add(1, ordering: .relaxed).newValue
    description = "\(WorkerID.host)~\(getpid())~\(time)\(count)"
  }

  private static let made = Atomic<Int>(0)

  /// The host's name, with `-` for each character that a file name should not have.
  package static let host: String = {
    var name = [CChar](repeating: 0, count: 256)
    gethostname(&name, 255)
    let text = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    return String(text.prefix(64).map { $0.isASCII && ($0.isLetter || $0.isNumber || "-.".contains($0)) ? $0 : "-" })
  }()

  /// Whether the process that the ID of a worker on this host names has ended.
  package static func isProcessGone(_ name: String) -> Bool {
    let parts = name.split(separator: "~")
    guard parts.count == 3, let process = pid_t(parts[1]) else { return false }
    return kill(process, 0) != 0 && errno == ESRCH
  }

  package static func isOnThisHost(_ name: String) -> Bool {
    name.hasPrefix(host + "~") || name.hasPrefix("." + host + "~")
  }
}
