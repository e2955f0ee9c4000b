import Foundation
import Synchronization

/// A receiver of events. It is killed when the last reference is released.
public final class ReceiverServer {
  /// A request that the receiver has answered, or is about to answer.
  public struct Request: Decodable {
    /// 0 for a request that has arrived and has no answer yet.
    public let status: Int
    public let path: String
    /// By lower-case name.
    public let headers: [String: String]
    public let body: String
    /// Whether the batch was in one of the directories of `watch`.
    public let isRetired: Bool

    public var event: BatchEventJSON {
      get throws { try JSONDecoder().decode(BatchEventJSON.self, from: Data(body.utf8)) }
    }
  }

  /// The answer to requests, as `Tests/receiver/receiver.py` reads it. By default 204 at once.
  public struct Answer: Encodable {
    public var status: Int?
    public var headers: [String: String]?
    public var body: String?
    /// Bytes that follow the body.
    public var bytes: Int?
    /// Whether requests wait for the next answer.
    public var hold: Bool?
    /// The answer comes up to this many seconds later.
    public var delayS: Double?
    /// Directories of retired batches; see ``Request/isRetired``.
    public var watch: [String]?

    public init(
      status: Int? = nil, headers: [String: String]? = nil, body: String? = nil, bytes: Int? = nil, hold: Bool? = nil,
      delayS: Double? = nil, watch: [String]? = nil
    ) {
      (self.status, self.headers, self.body, self.bytes) = (status, headers, body, bytes)
      (self.hold, self.delayS, self.watch) = (hold, delayS, watch)
    }
  }

  public private(set) var port: UInt16 = 0
  private static let used = Mutex<Set<UInt16>>([])
  private let directory: ScratchDirectory
  private var process: Process?
  private var input = Pipe()
  private var read = UInt64(0)
  private var known: [Request] = []

  public init() throws {
    directory = try ScratchDirectory()
    // Ports below the kernel's ephemeral range, so no other process gets the port during a restart.
    for _ in 0..<50 {
      port = UInt16.random(in: 15_000..<20_000)
      let port = port
      guard Self.used.withLock({ $0.insert(port).inserted }) else { continue }
      answer()
      if try start() { return }
    }
    throw Tool.Failure("no receiver starts")
  }

  deinit { kill() }

  public var url: String { "http://127.0.0.1:\(port)/hook?token=hush" }

  /// Sets the answer to all further requests.
  public func answer(_ answer: Answer = Answer()) {
    let path = directory.path("control")
    let text = try? JSONEncoder().encode(answer)
    try? (text ?? Data()).write(to: URL(fileURLWithPath: path), options: .atomic)
  }

  public func kill() {
    guard let running = process else { return }
    Glibc.kill(running.processIdentifier, SIGKILL)
    running.waitUntilExit()
    process = nil
  }

  /// Starts the receiver again after ``kill()``.
  public func restart() throws {
    for _ in 0..<100 {
      if try start() { return }
      usleep(50_000)
    }
    throw Tool.Failure("the receiver does not start again")
  }

  /// All lines of the receiver's log so far: arrivals and answers.
  public func log() throws -> [Request] {
    guard let file = FileHandle(forReadingAtPath: directory.path("log")) else { return [] }
    try file.seek(toOffset: read)
    let text = try file.readToEnd() ?? Data()
    // A killed receiver may have written half a line.
    let whole = text[..<(text.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? text.startIndex)]
    read += UInt64(whole.count)
    known += whole.split(separator: UInt8(ascii: "\n")).compactMap { try? JSONDecoder().decode(Request.self, from: $0) }
    return known
  }

  /// The requests that were answered with 2xx.
  public func accepted() throws -> [Request] { try log().filter { (200...299).contains($0.status) } }

  /// The events that were answered with 2xx.
  public func events() throws -> [BatchEventJSON] { try accepted().map { try $0.event } }

  /// - Returns: false if the port is in use.
  private func start() throws -> Bool {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    let script = Fixture.root.appendingPathComponent("Tests/receiver/receiver.py").path
    process.arguments = [Tool.python, "-B", script, "\(port)", directory.path("log"), directory.path("control")]
    input = Pipe()
    let output = Pipe()
    process.standardInput = input
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.runTakingSignals()
    guard output.fileHandleForReading.availableData.starts(with: Data("ready".utf8)) else {
      Glibc.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
      return false
    }
    self.process = process
    return true
  }
}
