import Foundation

/// The built program under test.
public enum EncoderWorker {
  public static let path: String = {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("encoder-worker").path
  }()

  @discardableResult
  public static func run(_ arguments: String..., input: Data? = nil) throws -> Tool.Result {
    try Tool.run(path, arguments, input: input)
  }

  /// A run and its peak memory.
  public struct Measured {
    /// The exit status, or the negative number of the signal that ended the run.
    public let status: Int32
    public let errors: String
    public let peakBytes: Int
  }

  public static func measure(_ arguments: [String]) throws -> Measured {
    // A small process starts the program, because a child's peak memory starts at its parent's.
    let script = """
      import resource, subprocess, sys
      status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
      print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
      """
    let result = try Tool.run(Tool.python, ["-c", script, path] + arguments)
    let numbers = result.text.split { $0.isWhitespace }.compactMap { Int($0) }
    guard result.status == 0, numbers.count == 2 else { throw Tool.Failure(result.errors) }
    return Measured(status: Int32(numbers[0]), errors: result.errors, peakBytes: 1_024 * numbers[1])
  }

  /// Encodes a fixture into a directory and reads the session back. The session has the fixture's name; for any other folder, the
  /// folder's.
  public static func encode(
    _ fixture: Fixture, into scratch: ScratchDirectory, _ options: String...
  ) throws -> PublishedSession {
    // Plain batches have no session name. Native batches keep theirs.
    let session = URL(fileURLWithPath: fixture.name).lastPathComponent
    let result = try Tool.run(
      path, ["encode", fixture.path, "--output", scratch.path("output"), "--session", session] + options)
    guard result.status == 0 else { throw Tool.Failure("encode \(fixture): \(result.errors)") }
    return try PublishedSession(scratch.path("output/\(session)"))
  }
}

/// The running program under test. It is killed when the last reference is released, so a failing test leaves no
/// process.
public final class RunningWorker {
  private let process = Process()

  /// - Parameters:
  /// - environment: Variables in addition to those of the test process.
  /// - tool: A program, with its arguments, that executes the program under test.
  public init(_ arguments: [String], environment: [String: String] = [:], under tool: [String] = []) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = tool + [EncoderWorker.path] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.runTakingSignals()
  }

  deinit {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }

  public var isRunning: Bool { process.isRunning }

  /// The process number, as in the names of the worker's claims.
  public var processIdentifier: Int32 { process.processIdentifier }

  public func signal(_ number: Int32) { kill(process.processIdentifier, number) }

  /// Whether the worker handles SIGTERM: it blocks it, to read it from a descriptor. Before that a signal kills it.
  public var takesSignals: Bool {
    get throws {
      let status = try String(contentsOfFile: "/proc/\(processIdentifier)/status", encoding: .utf8)
      let blocked = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") }?.split(separator: "\t").last
      return blocked.flatMap { UInt64($0, radix: 16) }.map { $0 & 1 << UInt64(SIGTERM - 1) != 0 } ?? false
    }
  }

  /// Waits until the program exits, and verifies its published output.
  ///
  /// - Returns: The exit status, or the negative number of the signal that ended the program.
  public func wait() throws -> Int32 {
    process.waitUntilExit()
    let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    try PublishedOutput.verify(after: process.arguments ?? [], status)
    return status
  }
}
