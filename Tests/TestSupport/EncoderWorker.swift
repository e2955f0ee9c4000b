import Foundation

@testable import Encoding
@testable import JSON
@testable import Sessions
@testable import WorkQueues

/// The program under test, as it was built.
public enum EncoderWorker {
  public static let path: String = {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("encoder-worker").path
  }()

  @discardableResult
  public static func run(_ arguments: String..., input: Data? = nil) throws -> Tool.Result {
    try Tool.run(path, arguments, input: input)
  }

  /// A run with the most memory that it had.
  public struct Measured {
    /// The exit status, or the negative signal that ended it.
    public let status: Int32
    public let errors: String
    public let peakBytes: Int
  }

  public static func measure(_ arguments: [String]) throws -> Measured {
    // Started by something small: a child begins with its parent's peak.
    let script = """
      import resource, subprocess, sys
      status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
      print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
      """
    let result = try Tool.run("python3", ["-c", script, path] + arguments)
    let numbers = result.text.split { $0.isWhitespace }.compactMap { Int($0) }
    guard result.status == 0, numbers.count == 2 else { throw Tool.Failure(result.errors) }
    return Measured(status: Int32(numbers[0]), errors: result.errors, peakBytes: 1_024 * numbers[1])
  }

  /// A manifest's file, edited by an attacker who makes it look untouched.
  public static func seal(_ manifest: [String: Any]) throws -> Data {
    let text = try JSONSerialization.data(withJSONObject: manifest, options: .withoutEscapingSlashes)
    return Data(try SegmentManifest.text(of: JSONParser.parse(Array(text))))
  }

  /// Encodes a fixture into a directory and reads the session back.
  public static func encode(
    _ fixture: Fixture, into scratch: ScratchDirectory, _ options: String...
  ) throws -> PublishedSession {
    // Plain batches have no session of their own; native ones keep theirs.
    let result = try Tool.run(
      path, ["encode", fixture.path, "--output", scratch.path("output"), "--session", fixture.name] + options)
    guard result.status == 0 else { throw Tool.Failure("encode \(fixture): \(result.errors)") }
    return try PublishedSession(scratch.path("output/\(fixture.name)"))
  }
}

/// The program under test while it runs; killed when the last reference goes, so that a failing test leaves nothing behind.
public final class RunningWorker {
  private let process = Process()

  /// - Parameters:
  ///   - environment: beside our own.
  ///   - tool: a program that turns into ours, with its arguments.
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

  /// As it stands in the names of what it holds.
  public var processIdentifier: Int32 { process.processIdentifier }

  public func signal(_ number: Int32) { kill(process.processIdentifier, number) }

  /// Waits until it ends, and verifies what it has published.
  ///
  /// - Returns: the exit status, or the negative signal that ended it.
  public func wait() throws -> Int32 {
    process.waitUntilExit()
    let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    try PublishedOutput.verify(after: process.arguments ?? [], status)
    return status
  }
}
