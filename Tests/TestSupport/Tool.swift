import CLinux
import Foundation

/// Another program, run to its end.
public struct Tool {
  public struct Result {
    public let status: Int32
    public let output: Data
    public let errors: String

    public var text: String { String(decoding: output, as: UTF8.self) }
  }

  public struct Failure: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) { self.description = description }
  }

  /// Runs a program found on the path and gives what it wrote, whatever its exit status.
  ///
  /// - Parameter verifying: whether to verify what our own program has published; not where a test has damaged it.
  public static func run(
    _ program: String, _ arguments: [String], input: Data? = nil, in directory: URL? = nil,
    environment: [String: String] = [:], verifying: Bool = true
  ) throws -> Result {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.currentDirectoryURL = directory
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    // Files, not pipes: nobody has to read while the program runs.
    let scratch = try ScratchDirectory()
    let files = try ["output", "errors", "input"].map { name in
      let file = scratch.url.appendingPathComponent(name)
      try (name == "input" ? input ?? Data() : Data()).write(to: file)
      return file
    }
    process.standardOutput = try FileHandle(forWritingTo: files[0])
    process.standardError = try FileHandle(forWritingTo: files[1])
    process.standardInput = try FileHandle(forReadingFrom: files[2])
    try process.run()
    process.waitUntilExit()
    let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    if verifying { try PublishedOutput.verify(after: [program] + arguments, status, in: directory) }
    return Result(
      status: status,
      output: try Data(contentsOf: files[0]),
      errors: String(decoding: try Data(contentsOf: files[1]), as: UTF8.self))
  }

  /// Runs a program that must succeed.
  @discardableResult
  public static func output(_ program: String, _ arguments: [String], in directory: URL? = nil) throws -> Data {
    let result = try run(program, arguments, in: directory)
    guard result.status == 0 else {
      throw Failure("\(program) \(arguments.joined(separator: " ")): \(result.status): \(result.errors)")
    }
    return result.output
  }
}

/// A directory that goes when the last reference goes.
public final class ScratchDirectory: Sendable {
  public let url: URL

  public var path: String { url.path }

  public init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("segment-encoder-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  /// Whether the file system keeps extended attributes.
  public static let keepsAttributes: Bool = {
    guard let scratch = try? ScratchDirectory() else { return false }
    return scratch.setAttribute("user.test", [1])
  }()

  /// An extended attribute of the directory itself.
  public func attribute(_ name: String) -> [Int64] {
    var words = [Int64](repeating: 0, count: 512)
    let size = words.withUnsafeMutableBytes { getxattr(path, name, $0.baseAddress, $0.count) }
    return Array(words.prefix(max(0, size) / 8))
  }

  /// Sets an extended attribute of the directory itself.
  @discardableResult
  public func setAttribute(_ name: String, _ words: [Int64]) -> Bool {
    words.withUnsafeBytes { setxattr(path, name, $0.baseAddress, $0.count, 0) } == 0
  }

  /// A path in here; nothing is made.
  public func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  /// A directory in here, made.
  public func directory(_ name: String) throws -> String {
    let path = path(name)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  /// A file in here.
  @discardableResult
  public func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    let path = path(name)
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return path
  }
}

/// The names in a directory, in order.
public func names(in path: String) throws -> [String] {
  try FileManager.default.contentsOfDirectory(atPath: path).sorted()
}

/// A file as it was.
public struct FileState: Equatable {
  public let bytes: Data
  public let changed: String
}

/// Every file below a directory with its bytes and its moment of change, to see that nothing was touched.
public func snapshot(of path: String) throws -> [String: FileState] {
  var result: [String: FileState] = [:]
  for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
    let file = path + "/" + name
    var status = stat()
    guard lstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
    result[name] = FileState(
      bytes: try Data(contentsOf: URL(fileURLWithPath: file)),
      changed: "\(status.st_ino) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)")
  }
  return result
}

extension Process {
  /// A test's thread has signals blocked; what is started is to take them as it would anywhere.
  func runTakingSignals() throws {
    var (none, before) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try run()
  }
}
