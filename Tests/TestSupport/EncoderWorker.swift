import Foundation

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

  /// Starts it and goes on.
  public static func start(_ arguments: String...) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
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
