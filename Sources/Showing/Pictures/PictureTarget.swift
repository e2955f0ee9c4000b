// Where chosen pictures are written: a new directory, a zip, or JSON lines. Each gets its name when it is whole.

import Encoding
import FileSystem
import Films
import FrameBatches
import Glibc
import JSON
import Sessions

/// A kind of output of pictures.
package enum PictureTarget: Sendable, Equatable {
  case directory, zip, lines

  /// The name of the file with a line for each picture.
  package static let list = "pictures.jsonl"

  /// - Parameter name: of the output; its ending tells the kind.
  package init(ofName name: String) {
    let name = name.lowercased()
    self = name.hasSuffix(".zip") ? .zip : name.hasSuffix(".jsonl") ? .lines : .directory
  }

  /// - Parameter output: of the session. The target must lie outside of it.
  /// - Throws: ``BadTarget``, ``DiskError``.
  func open(_ path: String, outside output: String?) throws -> any PictureSink {
    switch self {
    case .directory: try PictureFolder(path, outside: output)
    case .zip: try PictureZip(path, outside: output)
    case .lines: try PictureLines(path, outside: output)
    }
  }
}

/// An output that is being written. Dropping it abandons it.
protocol PictureSink: AnyObject {
  /// The path of the output.
  var target: String { get }

  /// - Parameter facts: the members of its line.
  func add(_ name: String, _ image: [UInt8], as format: ImageFormat, _ facts: [String: JSONValue]) throws

  /// Gives the output its name, durable.
  ///
  /// - Returns: its size in bytes.
  func finish() throws -> Int
}

extension [String: JSONValue] {
  /// The line of a picture in a file.
  fileprivate func line(of name: String) -> [UInt8] {
    JSONValue.object(merging(["file": .string(name)]) { $1 }).bytes() + [UInt8(ascii: "\n")]
  }
}

/// A file that is appended to, and published as a whole.
private struct PictureFile {
  let target: String
  private let file: OutputFile
  private(set) var size = 0

  init(_ path: String, outside output: String?) throws {
    target = try Stitching.file(path)
    try Stitching.requirePlace(of: target, outside: output)
    file = try OutputFile(unnamedIn: DurableFile.parentDirectory(of: target))
  }

  mutating func append(_ bytes: [UInt8]) throws {
    try file.write(bytes, at: size)
    size += bytes.count
  }

  func publish() throws { try file.publish(as: target) }
}

/// One JSON object a line, with the picture in it as a `data:` URI.
private final class PictureLines: PictureSink {
  private var file: PictureFile
  var target: String { file.target }

  init(_ path: String, outside output: String?) throws { file = try PictureFile(path, outside: output) }

  func add(_ name: String, _ image: [UInt8], as format: ImageFormat, _ facts: [String: JSONValue]) throws {
    let kind = format == .png ? "png" : "jpeg"
    try file.append(
      facts.merging(["image": .string("data:image/\(kind);base64,\(Base64.encode(image))")]) { $1 }.line(of: name))
  }

  func finish() throws -> Int {
    try file.publish()
    return file.size
  }
}

/// A zip of pictures, and of their lines.
private final class PictureZip: PictureSink {
  private final class Sink {
    var file: PictureFile
    init(_ file: PictureFile) { self.file = file }
  }

  private let sink: Sink
  private let zip: ZipOutput
  private var lines: [UInt8] = []
  var target: String { sink.file.target }

  init(_ path: String, outside output: String?) throws {
    let sink = Sink(try PictureFile(path, outside: output))
    self.sink = sink
    zip = try ZipOutput { try sink.file.append($0) }
  }

  func add(_ name: String, _ image: [UInt8], as format: ImageFormat, _ facts: [String: JSONValue]) throws {
    try zip.add(name, image)
    lines += facts.line(of: name)
  }

  func finish() throws -> Int {
    try zip.add(PictureTarget.list, lines)
    try zip.finish()
    try sink.file.publish()
    return sink.file.size
  }
}

/// A new directory of pictures, and of their lines. It is written under another name, and renamed when it is whole.
private final class PictureFolder: PictureSink {
  let target: String
  private let temporary: String
  private let directory: Directory
  private let lines: OutputFile
  private var (lineBytes, pictureBytes) = (0, 0)
  private var names: [String] = []
  private var isFinished = false

  init(_ path: String, outside output: String?) throws {
    target = try Stitching.newDirectory(path)
    try Stitching.requirePlace(of: target, outside: output)
    temporary = target + ".part"
    try Stitching.requirePlace(of: temporary, outside: output)
    if mkdir(temporary, 0o755) != 0, errno != EEXIST { throw DiskError("mkdir", temporary) }
    directory = try Directory(opening: temporary, followingLinks: false)
    guard try directory.lock() else {
      throw BadTarget(
        path: target, cause: "another process writes it", advice: "wait for it, or name another directory")
    }
    try Self.removeLeftovers(in: directory, temporary)
    lines = try OutputFile(creating: temporary + "/" + PictureTarget.list)
  }

  deinit { if !isFinished { try? DurableFile.removeTree(temporary) } }

  /// Removes the pictures that a killed process left, and nothing else.
  private static func removeLeftovers(in directory: Directory, _ path: String) throws {
    let names = try directory.entries().map(\.name)
    if let other = names.first(where: { $0 != PictureTarget.list && !PictureFacts.isFileName($0) }) {
      throw BadTarget(
        path: path, cause: "it has other files, such as '\(other)'",
        advice: "move it away; pictures are written there first")
    }
    for name in names { try check("unlink", path + "/" + name) { unlink(path + "/" + name) } }
  }

  func add(_ name: String, _ image: [UInt8], as format: ImageFormat, _ facts: [String: JSONValue]) throws {
    try DurableFile.create(temporary + "/" + name, image, isDurable: false)
    names.append(name)
    pictureBytes += image.count
    let line = facts.line(of: name)
    try lines.write(line, at: lineBytes)
    lineBytes += line.count
  }

  func finish() throws -> Int {
    try lines.finish()
    if try !directory.syncFileSystem() {
      for name in names { try Self.sync(temporary + "/" + name) }
      try directory.sync()
    }
    guard rename(temporary, target) == 0 else {
      let failure = DiskError("rename", target)
      guard ![ENOTEMPTY, EEXIST, ENOTDIR].contains(failure.code) else { throw Stitching.isTaken(target) }
      throw failure
    }
    isFinished = true
    try Directory(opening: DurableFile.parentDirectory(of: target)).sync()
    return pictureBytes + lineBytes
  }

  private static func sync(_ path: String) throws {
    let file = try check("open", path) { open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }
    defer { close(file) }
    try check("fsync", path) { fsync(file) }
  }
}

extension Stitching {
  /// Returns the path of a directory to make, or of an empty one, which must not be in a published session.
  ///
  /// - Throws: ``BadTarget``.
  static func newDirectory(_ path: String) throws -> String {
    var name = path
    while name.count > 1, name.hasSuffix("/") { name.removeLast() }
    let target = try target(name, in: DurableFile.parentDirectory)
    // An empty directory may lie in a session, too.
    try SessionDirectory.requireOutside(target)
    let parent = DurableFile.parentDirectory(of: target)
    guard DurableFile.isReachableDirectory(parent) else {
      throw BadTarget(path: target, cause: "no directory \(parent)", advice: "make it first")
    }
    if DurableFile.exists(target) {
      guard try DurableFile.isDirectory(target), try Directory(opening: target).entries(limit: 1).isEmpty else {
        throw isTaken(target)
      }
    }
    return target
  }

  /// Refuses a target in the output of its session: `delete` would leave the pictures there.
  ///
  /// - Parameter output: without links; nil to allow it.
  /// - Throws: ``BadTarget``.
  fileprivate static func requirePlace(of target: String, outside output: String?) throws {
    guard let output else { return }
    // Another session may lie there.
    try SessionDirectory.requireOutside(DurableFile.parentDirectory(of: target))
    let parent = DurableFile.resolved(DurableFile.parentDirectory(of: target))
    let place = (parent == "/" ? "" : parent) + "/" + lastComponent(of: target)
    guard place == output || place.hasPrefix(output == "/" ? output : output + "/") else { return }
    throw BadTarget(
      path: target, cause: "it lies in the output of the session, \(output), and delete would leave the pictures there",
      advice: "name a path outside of \(output)")
  }

  static func isTaken(_ target: String) -> BadTarget {
    BadTarget(path: target, cause: "it is no empty directory", advice: "name a new one")
  }
}
