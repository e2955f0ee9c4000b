import Foundation

/// A server that speaks the protocol of Redis and lies, as `Tests/torture/hostile_redis.py` says. It ends when the last reference is
/// released.
public final class HostileRedis {
  private let process = Process()
  /// The server exits when this pipe closes.
  private let input = Pipe()
  private let output = Pipe()
  public let port: UInt16

  public init(_ mode: String) throws {
    process.executableURL = URL(fileURLWithPath: Tool.python)
    process.arguments = ["-B", Fixture.root.appendingPathComponent("Tests/torture/hostile_redis.py").path, mode]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    guard let port = UInt16(try Self.line(of: output)) else { throw Tool.Failure("no port of the hostile Redis") }
    self.port = port
  }

  deinit {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }

  public var url: String { "redis://127.0.0.1:\(port)" }

  /// The numbers of commands so far, by the name of their script, or their own.
  public func counts() throws -> [String: Int] {
    try input.fileHandleForWriting.write(contentsOf: Data("\n".utf8))
    return try JSONDecoder().decode([String: Int].self, from: Data(Self.line(of: output).utf8))
  }

  private static func line(of output: Pipe) throws -> String {
    var said = Data()
    while !said.contains(UInt8(ascii: "\n")) {
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { throw Tool.Failure("the hostile Redis has ended") }
      said += more
    }
    return String(decoding: said.dropLast(), as: UTF8.self)
  }
}
