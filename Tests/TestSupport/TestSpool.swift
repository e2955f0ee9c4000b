import Foundation

/// A spool for tests. The test adds batches, and the worker encodes them.
public struct TestSpool {
  public let scratch: ScratchDirectory
  public let path: String

  public var output: String { path + "/output" }

  public init(in parent: URL = FileManager.default.temporaryDirectory) throws {
    scratch = try ScratchDirectory(in: parent)
    path = scratch.path("spool")
    for state in ["incoming", "tmp"] { _ = try scratch.directory("spool/" + state) }
  }

  /// Adds a batch to `incoming/`, as a producer does.
  public func add(_ fixture: String, as name: String? = nil) throws {
    let name = name ?? fixture
    let draft = path + "/tmp/" + name
    try FileManager.default.copyItem(atPath: Fixture(fixture).path, toPath: draft)
    try FileManager.default.moveItem(atPath: draft, toPath: path + "/incoming/" + name)
  }

  public func add(file name: String, _ bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path + "/incoming/" + name))
  }

  /// Adds a plain batch of two frames at an interval of one second.
  public func addSmall(_ name: String, startMs: Int64, frames: [Int] = [0, 1]) throws {
    let draft = path + "/tmp/" + name
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    for (index, frame) in frames.enumerated() {
      let source = Fixture("exact-1fps").path + String(format: "/%04d.jpg", frame)
      try FileManager.default.copyItem(atPath: source, toPath: draft + "/\(startMs + Int64(index) * 1_000).jpg")
    }
    try FileManager.default.moveItem(atPath: draft, toPath: path + "/incoming/" + name)
  }

  /// Starts a worker on the spool.
  public func start(_ options: String...) throws -> RunningWorker { try RunningWorker(["--spool", path] + options) }

  @discardableResult
  public func drain(_ options: String..., verifying: Bool = true) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, ["--spool", path, "--drain"] + options, verifying: verifying)
  }

  /// Ends a session of the default output, as if a worker had announced that.
  public func endAnnounced(_ session: String) throws {
    let end = try EncoderWorker.run("end", session, "--output", output)
    guard end.status == 0 else { throw Tool.Failure("end: \(end.errors)") }
    for place in [".ending", ".behind"] { try? FileManager.default.removeItem(atPath: "\(output)/\(place)") }
  }

  public func names(_ state: String) throws -> [String] {
    let directory = path + "/" + state
    return FileManager.default.fileExists(atPath: directory) ? try TestSupport.names(in: directory) : []
  }

  public var isAtRest: Bool {
    get throws {
      try names("incoming").isEmpty && names("claimed").isEmpty && names("trash").isEmpty
        && names("output/.staging").isEmpty
    }
  }

  public func waitUntil(_ what: String, _ condition: () throws -> Bool) throws {
    for _ in 0..<1_200 {
      if try condition() { return }
      usleep(50_000)
    }
    throw Tool.Failure("still not: \(what)")
  }
}
