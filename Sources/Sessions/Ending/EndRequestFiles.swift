// `OUTPUT/.ending/SESSION.json`: the sessions that are to end, or whose end is not announced yet. A process that works on one has
// locked its file.

import FileSystem
import FrameBatches
import Glibc
import JSON

struct EndRequestFiles {
  private static let ending = ".json"

  private let path: String

  init(output: String) { path = output + "/.ending" }

  private func file(of session: SessionID) -> String { path + "/" + session.description + Self.ending }

  /// Writes a request, durable when this returns. It replaces an older one, which awaits no more batches.
  ///
  /// - Parameter temporary: a file name to write under, on the same file system.
  func add(_ request: EndRequest, temporary: String) throws(DiskError) {
    // An ending process may remove the empty directory.
    for isLast in [false, false, true] {
      try DurableFile.makeDirectories(path)
      do throws(DiskError) {
        try DurableFile.replace(file(of: request.session), request.bytes, temporary: temporary)
        return try Directory(opening: path).sync()
      } catch  where error.code == ENOENT && !isLast {
        continue
      }
    }
  }

  func isThere(_ session: SessionID) throws(DiskError) -> Bool { try DurableFile.isThere(file(of: session)) }

  /// Returns the sessions with a request.
  func sessions() throws(DiskError) -> [SessionID] {
    try Directory.entries(ifAt: path).filter { $0.name.hasSuffix(Self.ending) }
      .compactMap { SessionID(String($0.name.dropLast(Self.ending.count))) }
  }

  /// Takes a request.
  ///
  /// - Returns: nil if it is gone or waits, or another process has it.
  func take(_ session: SessionID, unless waits: (EndRequest) throws -> Bool) throws -> HeldEndRequest? {
    let name = file(of: session)
    let descriptor = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else {
      let failure = DiskError("open", name)
      guard [ENOENT, ENOTDIR].contains(failure.code) else { throw failure }
      return nil
    }
    guard let file = try OpenFile(owning: descriptor, path: name) else { return nil }
    if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      if errno == EWOULDBLOCK { return nil }
      let failure = DiskError("flock", name)
      guard failure.saysNoLocks else { throw failure }
    }
    // Another process may have removed or replaced it meanwhile.
    guard try isCurrent(file, of: session) else { return nil }
    guard let bytes = try DurableFile.contents(of: name, limit: EndRequest.maximumBytes) else { return nil }
    let request: EndRequest
    do {
      request = try EndRequest(JSONParser.parse(bytes), of: session)
    } catch {
      throw DamagedOutput(path: name, cause: "no request: \(error)")
    }
    return try waits(request) ? nil : HeldEndRequest(request: request, hold: .file(file))
  }

  /// Removes a request that was taken, unless a newer one has replaced it.
  func remove(_ file: OpenFile, of session: SessionID) throws {
    if try isCurrent(file, of: session) { try remove(session) }
  }

  /// Removes a request.
  func remove(_ session: SessionID) throws(DiskError) {
    let name = file(of: session)
    try check("unlink", name) { unlink(name) == 0 || [ENOENT, ENOTDIR].contains(errno) ? 0 : -1 }
    rmdir(path)
  }

  private func isCurrent(_ file: OpenFile, of session: SessionID) throws(DiskError) -> Bool {
    let name = self.file(of: session)
    var (opened, named) = (stat(), stat())
    try check("stat", name) { fstat(file.descriptor, &opened) }
    try check("stat", name) { lstat(name, &named) == 0 || errno == ENOENT ? 0 : -1 }
    return (opened.st_ino, opened.st_dev) == (named.st_ino, named.st_dev)
  }
}
