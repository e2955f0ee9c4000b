import Foundation

/// A worker that takes batches over HTTP. It is killed when the last reference is released.
public final class RunningIngest {
  private let process = Process()
  private let scratch: ScratchDirectory
  public let port: UInt16

  /// - Parameters:
  /// - arguments: Arguments of the program, without the address.
  /// - tool: A program, with its arguments, that executes the program under test.
  /// - port: 0 for any.
  public init(
    _ arguments: [String], environment: [String: String] = [:], under tool: [String] = [], port: UInt16 = 0
  ) throws {
    scratch = try ScratchDirectory()
    let log = scratch.path("log")
    _ = FileManager.default.createFile(atPath: log, contents: nil)
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = tool + [EncoderWorker.path, "run"] + arguments + ["--ingest", "127.0.0.1:\(port)"]
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
    try process.runTakingSignals()
    let running = process
    self.port = try firstValue(of: "the worker listens") {
      let text = try String(contentsOfFile: log, encoding: .utf8)
      let mark = "taking batches at http://127.0.0.1:"
      if let range = text.firstRange(of: mark), let end = text[range.upperBound...].firstIndex(of: "/") {
        return UInt16(text[range.upperBound..<end])
      }
      if !running.isRunning { throw Tool.Failure("no worker: \(text)") }
      return nil
    }
  }

  deinit { kill() }

  public var processIdentifier: Int32 { process.processIdentifier }
  public var isRunning: Bool { process.isRunning }
  /// All that the worker has written to standard error.
  public var log: String { (try? String(contentsOfFile: scratch.path("log"), encoding: .utf8)) ?? "" }

  /// Whether a signal has ended the worker.
  public var wasKilled: Bool { !process.isRunning && process.terminationReason == .uncaughtSignal }

  public func signal(_ number: Int32) { Foundation.kill(process.processIdentifier, number) }

  public func kill() {
    if process.isRunning { signal(SIGKILL) }
    process.waitUntilExit()
  }

  /// - Returns: The exit status, or the negative number of the signal that ended the program.
  public func stop() -> Int32 {
    signal(SIGTERM)
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
  }

  /// The resident memory of the worker in KiB.
  public func residentKiB() throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(processIdentifier)/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
    return Int(line.filter(\.isNumber)) ?? 0
  }

  /// Sends a request with a body, on a connection of its own.
  public func send(
    _ method: String, _ path: String, _ headers: [String: String] = [:], body: Data = Data()
  ) throws -> RunningServer.Reply {
    var fields = ["Host": "127.0.0.1", "Connection": "close"]
    if ["PUT", "POST"].contains(method) { fields["Content-Length"] = "\(body.count)" }
    let head = fields.merging(headers) { $1 }.map { "\($0): \($1)\r\n" }.joined()
    return try exchange(Data("\(method) \(path) HTTP/1.1\r\n\(head)\r\n".utf8) + body)
  }

  /// Opens a connection. The caller closes it.
  public func connection() throws -> Int32 {
    let file = try RunningServer.connection(toPort: port)
    var timeout = timeval(tv_sec: 120, tv_usec: 0)
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    return file
  }

  /// Sends these bytes as far as the server takes them, and reads until it closes the connection.
  public func exchange(_ bytes: Data) throws -> RunningServer.Reply {
    let file = try connection()
    defer { close(file) }
    bytes.withUnsafeBytes { bytes in
      var sent = 0
      while sent < bytes.count {
        let count = Foundation.send(file, bytes.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
        if count <= 0 { break }
        sent += count
      }
    }
    return try Self.reply(from: file)
  }

  /// Reads a reply until the server closes the connection.
  public static func reply(from file: Int32) throws -> RunningServer.Reply {
    var all = Data()
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = recv(file, &buffer, buffer.count, 0), count > 0 { all += buffer[..<count] }
    // An interim response may come first.
    if all.starts(with: Data("HTTP/1.1 100".utf8)), let end = all.firstRange(of: Data("\r\n\r\n".utf8)) {
      all = Data(all[end.upperBound...])
    }
    guard let end = all.firstRange(of: Data("\r\n\r\n".utf8)) else {
      throw Tool.Failure("no answer: \(String(decoding: all, as: UTF8.self))")
    }
    let lines = String(decoding: all[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
    let headers = lines.dropFirst().map { line in
      let parts = line.split(separator: ":", maxSplits: 1)
      return (parts[0].lowercased(), parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "")
    }
    return RunningServer.Reply(
      status: Int(lines[0].split(separator: " ")[1]) ?? 0, headers: Dictionary(headers) { $1 },
      body: Data(all[end.upperBound...]))
  }
}
