import CLinux
import Foundation

/// An external program and its result.
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

  /// Debian's Python, with the modules that `scripts/setup` installs for it. Another one may come first on the path.
  public static let python = "/usr/bin/python3"

  /// Runs a program from the path and returns its output, for any exit status.
  ///
  /// - Parameter verifying: Whether to verify the published output. False after a test has damaged the output.
  public static func run(
    _ program: String, _ arguments: [String], input: Data? = nil, in directory: URL? = nil,
    environment: [String: String] = [:], verifying: Bool = true
  ) throws -> Result {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.currentDirectoryURL = directory
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    // The output goes to files, because a full pipe would block the program.
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

  /// Runs a program and throws unless it succeeds.
  @discardableResult
  public static func output(_ program: String, _ arguments: [String], in directory: URL? = nil) throws -> Data {
    let result = try run(program, arguments, in: directory)
    guard result.status == 0 else {
      throw Failure("\(program) \(arguments.joined(separator: " ")): \(result.status): \(result.errors)")
    }
    return result.output
  }

  /// Compiles Swift code with `swiftc`. Its driver crashes if the path of its temporary files has a letter beyond ASCII.
  public static func compile(_ arguments: [String]) throws -> Result {
    try run("swiftc", arguments, environment: ["TMPDIR": "/tmp"])
  }
}

/// A temporary directory, which is removed when the last reference is released.
public final class ScratchDirectory: Sendable {
  public let url: URL

  public var path: String { url.path }

  /// - Parameter parent: The directory for it. Other users can reach `/tmp`, and its path has no blanks.
  public init(in parent: URL = FileManager.default.temporaryDirectory) throws {
    // Short: the path of a socket in it has at most 107 bytes, and TMPDIR may be long.
    url = parent.appendingPathComponent("se-\(UUID().uuidString.prefix(13))")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    // Whatever the umask is: tests run programs as another user.
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: url.path)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  /// Whether the file system keeps extended attributes.
  public static let keepsAttributes: Bool = {
    guard let scratch = try? ScratchDirectory() else { return false }
    return scratch.setAttribute("user.test", [1])
  }()

  /// Returns an extended attribute of the directory itself.
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

  /// Returns a path in the directory. Creates nothing.
  public func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  /// Creates a directory in the scratch directory and returns its path.
  public func directory(_ name: String) throws -> String {
    let path = path(name)
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
  }

  /// Writes a file in the directory and returns its path.
  @discardableResult
  public func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    let path = path(name)
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return path
  }
}

/// Returns the names in a directory, sorted.
public func names(in path: String) throws -> [String] {
  try FileManager.default.contentsOfDirectory(atPath: path).sorted()
}

/// The state of a file at one time.
public struct FileState: Equatable {
  public let bytes: Data
  public let changed: String
}

/// Returns the bytes, inode and modification time of every file below a directory. Tests use it to detect changes.
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
  /// Runs the process with all signals unblocked. A test thread has blocked signals, which a child would inherit.
  public func runTakingSignals() throws {
    var (none, before) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try run()
  }
}
