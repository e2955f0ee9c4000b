import Foundation
import Synchronization

@testable import Sessions
@testable import WorkQueues

/// Verifies the output of each run of the program. Each run that a test makes is followed by what `encoder-worker verify` does, so
/// that no test can forget it.
enum PublishedOutput {
  /// Sessions that were found right, by their paths, with the state they had then.
  private static let verified = Mutex<[String: String]>([:])

  /// Verifies the sessions that a command may have published, but for those that have not changed since.
  ///
  /// - Parameters:
  ///   - command: a program and its arguments; ours may stand behind another one, as behind strace.
  ///   - status: how it ended.
  ///   - directory: where it ran; nil for this process's own.
  /// - Throws: ``Tool/Failure`` when `verify` finds anything wrong.
  static func verify(after command: [String], _ status: Int32, in directory: URL? = nil) throws {
    // After any other status the views of a session may lag.
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

  /// The output directory of a command that publishes; nil for any other.
  private static func output(of command: [String]) -> String? {
    guard let program = command.firstIndex(of: EncoderWorker.path) else { return nil }
    let words = command[(program + 1)...]
    guard let first = words.first, first.hasPrefix("-") || ["run", "encode", "reencode"].contains(first) else {
      return nil
    }
    func value(_ option: String) -> String? {
      words.firstIndex(of: option).flatMap { words.indices.contains($0 + 1) ? words[$0 + 1] : nil }
    }
    return value("--output") ?? value("--spool").map { $0 + "/output" }
  }

  /// Changes with each segment that is published; nil where there is no session.
  private static func state(of session: String) -> String? {
    guard let files = try? names(in: session), files.contains("session.json") else { return nil }
    var status = stat()
    guard stat(session + "/session.json", &status) == 0 else { return nil }
    return "\(files.count) \(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)"
  }
}
