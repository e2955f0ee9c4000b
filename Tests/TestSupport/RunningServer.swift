import Foundation

/// `encoder-worker serve`, or a worker with a listener. It stops when the last reference is released.
public final class RunningServer {
  private let process = Process()
  public let port: UInt16

  /// - Parameters:
  /// - arguments: Arguments of the program.
  /// - listening: The address to listen on. Port 0 selects a free port.
  /// - log: A file for strace(1)'s log of all opened files; nil for none. It has all files of the answers so far: strace writes a
  ///   line before the call returns.
  public init(
    _ arguments: [String], environment: [String: String] = [:], listening: String = "127.0.0.1:0",
    openedTo log: String? = nil
  ) throws {
    // With -D, strace runs as a child of the server.
    let options = ["-D", "-f", "-e", "trace=open,openat,openat2", "-e", "signal=none", "-o"]
    let strace = log.map { ["strace"] + options + [$0] } ?? []
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = strace + [EncoderWorker.path] + arguments + ["--listen", listening]
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    let pipe = Pipe()
    // `serve` prints its address to standard output, and a worker prints it to standard error.
    process.standardOutput = arguments[0] == "serve" ? pipe : FileHandle.nullDevice
    process.standardError = arguments[0] == "serve" ? FileHandle.nullDevice : pipe
    try process.runTakingSignals()
    var said = Data()
    while !said.contains(UInt8(ascii: "\n")) {
      let more = pipe.fileHandleForReading.availableData
      guard !more.isEmpty else { throw Tool.Failure("no server: \(String(decoding: said, as: UTF8.self))") }
      said += more
    }
    let text = String(decoding: said, as: UTF8.self)
    // The port follows the host and its prefix in the output.
    guard let colon = listening.lastIndex(of: ":"), let range = text.firstRange(of: listening[...colon]),
      let port = UInt16(text[range.upperBound...].prefix { $0.isNumber })
    else { throw Tool.Failure("no address in \(text)") }
    self.port = port
  }

  deinit {
    if process.isRunning {
      kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
  }

  public var processIdentifier: Int32 { process.processIdentifier }

  /// - Returns: The exit status, or the negative number of the signal that ended the program.
  public func stop() -> Int32 {
    kill(process.processIdentifier, SIGTERM)
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
  }

  public struct Reply {
    public let status: Int
    /// Header values by lower-case name.
    public let headers: [String: String]
    public let body: Data

    public var text: String { String(decoding: body, as: UTF8.self) }
  }

  /// Requests a path, which is sent unchanged.
  public func get(
    _ path: String, method: String = "GET", _ headers: [String: String] = [:], timeoutS: Int = 60
  ) throws -> Reply {
    let fields = ["Host": "127.0.0.1", "Connection": "close"].merging(headers) { $1 }
    let head = fields.map { "\($0): \($1)\r\n" }.joined()
    return try exchange("\(method) \(path) HTTP/1.1\r\n\(head)\r\n", timeoutS: timeoutS)
  }

  /// The sizes of files without a name that the server has open: its films.
  public func unnamedFiles() throws -> [Int] {
    let directory = "/proc/\(processIdentifier)/fd"
    return try FileManager.default.contentsOfDirectory(atPath: directory).compactMap { name in
      let link = try? FileManager.default.destinationOfSymbolicLink(atPath: directory + "/" + name)
      var status = stat()
      guard let link, link.hasSuffix(" (deleted)"), !link.hasPrefix("/memfd:"),
        stat(directory + "/" + name, &status) == 0,
        status.st_mode & S_IFMT == S_IFREG
      else { return nil }
      return Int(status.st_size)
    }
  }

  /// Opens a connection to the server. The caller closes it.
  ///
  /// - Parameter bufferBytes: the size of the client's receive buffer; nil for the system's.
  public func connection(bufferBytes: Int32? = nil) throws -> Int32 {
    try Self.connection(toPort: port, bufferBytes: bufferBytes)
  }

  /// Opens a connection to a port of this machine. The caller closes it.
  static func connection(toPort port: UInt16, bufferBytes: Int32? = nil) throws -> Int32 {
    let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    if var bufferBytes {
      setsockopt(file, SOL_SOCKET, SO_RCVBUF, &bufferBytes, socklen_t(MemoryLayout<Int32>.size))
    }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let connected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard connected == 0 else {
      close(file)
      throw Tool.Failure("connect: \(errno)")
    }
    return file
  }

  /// Reads all connections at the same time, each until the server closes it, and closes them.
  public static func answers(on files: [Int32]) throws -> [Data] {
    var answers = files.map { _ in Data() }
    var polled = files.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    defer { for file in files { close(file) } }
    // poll(2) ignores negative descriptors.
    while polled.contains(where: { $0.fd >= 0 }) {
      guard poll(&polled, nfds_t(polled.count), 600_000) > 0 else { throw Tool.Failure("poll: \(errno)") }
      for index in polled.indices where polled[index].revents != 0 {
        let count = recv(polled[index].fd, &buffer, buffer.count, 0)
        if count > 0 { answers[index] += buffer[..<count] } else { polled[index].fd = -1 }
      }
    }
    return answers
  }

  /// Sends these bytes, and reads until the server closes the connection.
  ///
  /// - Parameter patienceS: Read timeout in seconds.
  public func exchange(_ text: String, timeoutS: Int = 60) throws -> Reply {
    let file = try connection()
    defer { close(file) }
    var timeoutS = timeval(tv_sec: timeoutS, tv_usec: 0)
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &timeoutS, socklen_t(MemoryLayout<timeval>.size))
    let handle = FileHandle(fileDescriptor: file, closeOnDealloc: false)
    try handle.write(contentsOf: Data(text.utf8))
    let all = try handle.readToEnd() ?? Data()
    guard let end = all.firstRange(of: Data("\r\n\r\n".utf8)) else {
      throw Tool.Failure("no answer to \(text): \(String(decoding: all, as: UTF8.self))")
    }
    let lines = String(decoding: all[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
    let headers = lines.dropFirst().map { line in
      let parts = line.split(separator: ":", maxSplits: 1)
      return (parts[0].lowercased(), parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "")
    }
    return Reply(
      status: Int(lines[0].split(separator: " ")[1]) ?? 0, headers: Dictionary(headers) { $1 },
      body: Data(all[end.upperBound...]))
  }
}
