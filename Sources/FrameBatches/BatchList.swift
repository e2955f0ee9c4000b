import FileSystem
import Glibc

/// Paths of batches in a file or from standard input: one a line; or, if the list has a zero byte, each ended by one.
package struct BatchList: Sendable, Equatable {
  /// Maximum size of a list in bytes: a million paths of average length.
  package static let sizeLimit = 64 << 20

  /// In the order of the list.
  package let paths: [String]

  /// - Parameter path: a file or a pipe; `-` is standard input.
  /// - Throws: ``Failure``; ``DiskError`` when reading fails.
  package init(reading path: String) throws {
    guard path != "-" else {
      self = try Self(Self.bytes(of: STDIN_FILENO, "standard input"), called: "standard input")
      return
    }
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else {
      let failure = DiskError("open", path)
      guard [ENOENT, ENOTDIR, EACCES].contains(failure.code) else { throw failure }
      throw Failure(.usage, "\(failure); check --files-from")
    }
    defer { close(file) }
    self = try Self(Self.bytes(of: file, path), called: path)
  }

  /// - Parameter name: the list's name in messages.
  package init(_ bytes: [UInt8], called name: String) throws(Failure) {
    guard !Self.listsTimes(bytes) else {
      throw Failure(
        .usage,
        "\(name): a list of times for ffmpeg, not of batches; name the folder of the pictures, and --times \(name.shellQuoted)"
      )
    }
    let separator: UInt8 = bytes.contains(0) ? 0 : 0x0A
    var paths: [String] = []
    for (number, line) in bytes.split(separator: separator, omittingEmptySubsequences: false).enumerated()
    where !line.isEmpty {
      guard let path = String(validating: line, as: UTF8.self) else {
        throw Failure(.usage, "\(name):\(number + 1): a path that is not UTF-8; give the batch another name")
      }
      guard path != "-" else {
        throw Failure(.usage, "\(name):\(number + 1): - is no path; write ./- for a file of this name")
      }
      paths.append(path)
    }
    self.paths = paths
  }

  /// Whether a text is a list of ffmpeg's concat demuxer: `file 'img1.png'`.
  private static func listsTimes(_ bytes: [UInt8]) -> Bool {
    let lines = bytes.split(separator: 0x0A).lazy.filter {
      !$0.allSatisfy { $0 == 0x20 || $0 == 0x0D } && $0.first != 0x23
    }
    guard let first = lines.first else { return false }
    return first.starts(with: "ffconcat version".utf8)
      || lines.allSatisfy { line in ["file ", "duration "].contains { line.starts(with: $0.utf8) } }
  }

  private static func bytes(of file: Int32, _ name: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe read(file, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else {
        let failure = DiskError("read", name)
        throw failure.code == EISDIR
          ? Failure(.usage, "\(failure); name a directory of batches with --batches") : failure
      }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
      guard bytes.count <= sizeLimit else {
        throw Failure(.usage, "\(name): more than \(sizeLimit) bytes; split the list")
      }
    }
  }
}
