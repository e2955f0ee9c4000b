import Foundation
import Synchronization

@testable import Sessions
@testable import WorkQueues

/// Verifies the output of each program run with the same check as `encoder-worker verify`. Every run in a test is
/// verified automatically.
enum PublishedOutput {
  /// The verified sessions by path, each with its state at that time.
  private static let verified = Mutex<[String: String]>([:])

  /// Verifies the sessions that a command may have published, except those that have not changed since the last check.
  ///
  /// - Parameters:
  /// - command: A program and its arguments. The program under test may follow a wrapper such as strace.
  /// - status: The exit status of the command.
  /// - directory: The command's working directory. Nil means that of this process.
  /// - Throws: ``Tool/Failure`` if `verify` finds a problem.
  static func verify(after command: [String], _ status: Int32, in directory: URL? = nil) throws {
    // After any other exit status, the views of a session may be stale.
    guard [0, 65].contains(status), let output = output(of: command) else { return }
    let path = URL(fileURLWithPath: output, relativeTo: directory).path
    for name in (try? names(in: path)) ?? [] where !name.hasPrefix(".") {
      let session = path + "/" + name
      guard let state = state(of: session), verified.withLock({ $0[session] }) != state else { continue }
      let report = try Verification.report(on: session)
      guard report.problems.isEmpty else {
        throw Tool.Failure("\(command.joined(separator: " ")) published what verify finds wrong: \(report.json)")
      }
      verified.withLock { $0[session] = state }
    }
  }

  /// Returns the output directory of a publishing command, or nil for any other command.
  private static func output(of command: [String]) -> String? {
    guard let program = command.firstIndex(of: EncoderWorker.path) else { return nil }
    let words = command[(program + 1)...]
    let publishing = ["run", "encode", "reencode"]
    guard let first = words.first, first.hasPrefix("-") || publishing.contains(first) else { return nil }
    func value(_ option: String) -> String? {
      words.firstIndex(of: option).flatMap { words.indices.contains($0 + 1) ? words[$0 + 1] : nil }
    }
    return value("--output") ?? value("--spool").map { $0 + "/output" }
  }

  /// Returns a value that changes with each published segment, or nil without a session.
  private static func state(of session: String) -> String? {
    guard let files = try? names(in: session), files.contains("session.json") else { return nil }
    var status = stat()
    guard stat(session + "/session.json", &status) == 0 else { return nil }
    return "\(files.count) \(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)"
  }
}
