import CLinux
import FileSystem
import Glibc

/// A broken promise.
struct Fault: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// - Throws: ``Fault`` unless the condition is true.
func require(_ condition: Bool, _ text: @autoclosure () -> String) throws {
  if !condition { throw Fault(text()) }
}

/// Waits until a condition is true; never for ever, so that a fault ends the program.
func waitUntil(_ awaited: String, _ condition: () throws -> Bool) async throws {
  for _ in 0..<60_000 {
    if try condition() { return }
    try await Task.sleep(for: .milliseconds(1))
  }
  throw Fault("still not: \(awaited)")
}

/// The parts of this process that a stream may leave behind.
enum Leftovers {
  /// The targets of open descriptors, sorted. Those that Swift's runtime opens when it likes are left out, and pipes: only sanitizers
  /// have some, to their symbolizer.
  static func files() throws -> [String] {
    let descriptors = try Directory(opening: "/proc/self/fd").entries()
    let targets = descriptors.compactMap { target(of: "/proc/self/fd/\($0.name)") }
    // The directory itself was open while its entries were read.
    let others = ["anon_inode:", "pipe:"]
    return targets.filter { target in !others.contains(where: target.hasPrefix) && !target.hasSuffix("/fd") }.sorted()
  }

  private static func target(of link: String) -> String? {
    var bytes = [UInt8](repeating: 0, count: 4_096)
    let count = readlink(link, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }

  static func threads() throws -> Int { try Directory(opening: "/proc/self/task").entries().count }

  /// The children of a process, also those that have ended and were not waited for. A sanitizer may have started its symbolizer.
  static func children(of process: Int32) -> [Int32] {
    let threads = (try? Directory(opening: "/proc/\(process)/task").entries()) ?? []
    let children = threads.flatMap { thread in
      text(of: "/proc/\(process)/task/\(thread.name)/children").split(separator: " ").compactMap { Int32($0) }
    }
    return children.filter { !text(of: "/proc/\($0)/comm").hasPrefix("llvm-symbolizer") }
  }

  /// Whether a process runs.
  static func isRunning(_ process: Int32) -> Bool {
    // The state follows the name of the program in parentheses (proc_pid_stat(5)).
    let state = text(of: "/proc/\(process)/stat").split(separator: ")").last?.split(separator: " ").first
    return state.map { !["Z", "X"].contains($0) } ?? false
  }

  private static func text(of path: String) -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = read(file, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  /// Bytes of memory in use. Sanitizers have a heap of their own, which this does not see; they find leaks themselves.
  static func memory() -> Int {
    let facts = mallinfo2()
    return facts.uordblks + facts.hblkhd
  }
}
