import Encoding
import FileSystem
import Foundation
import JSON
import Synchronization
import WorkQueues

/// A local Redis for one test, which persists acknowledged writes. It is killed when the last reference is released.
public final class QueueServer {
  public static let isInstalled = (try? Tool.run("redis-server", ["--version"]).status) == 0

  /// The port at 127.0.0.1, which stays the same after a restart.
  public let port: UInt16

  /// Ports in use, so that no other test server takes the port of a restarting server.
  private static let used = Mutex<Set<UInt16>>([])
  private let directory: ScratchDirectory
  private let options: [String]
  private let password: String?
  private var process = Process()

  /// - Parameters:
  /// - options: Options for `redis-server`, which override the defaults.
  /// - password: The password that clients must send.
  public init(_ options: [String] = [], password: String? = nil) throws {
    directory = try ScratchDirectory()
    self.options = options + (password.map { ["--requirepass", $0] } ?? [])
    self.password = password
    // Ports below the kernel's ephemeral range, so no other process gets the port during a restart.
    for _ in 0..<20 {
      let port = UInt16.random(in: 20_000..<32_000)
      guard Self.used.withLock({ $0.insert(port).inserted }) else { continue }
      if let process = try Self.start(at: port, in: directory, self.options, password) {
        self.port = port
        self.process = process
        return
      }
    }
    throw Tool.Failure("redis-server does not start: \(try Self.log(in: directory))")
  }

  deinit { kill() }

  /// The URL, without the password.
  public var url: String { "redis://127.0.0.1:\(port)" }

  /// The path of a Unix socket of the same server.
  public var socket: String { directory.path("socket") }

  /// Stops the server cleanly.
  public func stop() { end(SIGTERM) }

  /// Kills the server. Unwritten data is lost.
  public func kill() { end(SIGKILL) }

  /// Restarts the stopped server with its persisted data.
  public func restart() throws {
    guard !process.isRunning else { throw Tool.Failure("redis-server still runs") }
    guard let process = try Self.start(at: port, in: directory, options, password) else {
      throw Tool.Failure("redis-server does not start again: \(try Self.log(in: directory))")
    }
    self.process = process
  }

  /// Deletes all data.
  public func flush() throws { try command("FLUSHALL") }

  /// Suspends the server: it sends no response and keeps its connections open until `thaw`.
  public func freeze() { Glibc.kill(process.processIdentifier, SIGSTOP) }
  public func thaw() { Glibc.kill(process.processIdentifier, SIGCONT) }

  /// Sends a command and returns the reply, with one line for each string.
  @discardableResult
  public func command(_ words: String...) throws -> [String] {
    let result = try Self.ask(socket, words, password)
    guard result.status == 0 else { throw Tool.Failure("\(words): \(result.text)\(result.errors)") }
    let lines = result.text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
    return lines.dropLast().map(String.init)
  }

  private func end(_ signal: Int32) {
    guard process.isRunning else { return }
    Glibc.kill(process.processIdentifier, signal)
    process.waitUntilExit()
  }

  /// - Returns: The process, or nil if it exited at once, for example because the port is in use.
  private static func start(
    at port: UInt16, in directory: ScratchDirectory, _ options: [String], _ password: String?
  ) throws -> Process? {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments =
      [
        "redis-server", "--port", "\(port)", "--bind", "127.0.0.1", "--unixsocket", directory.path("socket"),
        "--dir", directory.path, "--logfile", directory.path("log"), "--save", "", "--appendonly", "yes",
        "--appendfsync", "everysec",
      ] + options
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.runTakingSignals()
    // Redis creates the socket after it binds the port, so a response proves that this server has the port.
    let endMs = MonotonicClock.milliseconds() + 600_000
    while MonotonicClock.milliseconds() < endMs {
      let answer = try ask(directory.path("socket"), ["PING"], password)
      if answer.text == "PONG\n" { return process }
      guard process.isRunning else { return nil }
      usleep(20_000)
    }
    Glibc.kill(process.processIdentifier, SIGKILL)
    throw Tool.Failure("redis-server does not answer PING within 600 s: \(try log(in: directory))")
  }

  private static func ask(_ socket: String, _ words: [String], _ password: String?) throws -> Tool.Result {
    try Tool.run(
      "redis-cli", ["-e", "-s", socket] + words, environment: password.map { ["REDISCLI_AUTH": $0] } ?? [:])
  }

  private static func log(in directory: ScratchDirectory) throws -> String {
    String(decoding: (try? Data(contentsOf: directory.url.appendingPathComponent("log"))) ?? Data(), as: UTF8.self)
  }
}
