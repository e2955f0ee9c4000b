// How many bytes of the disk the sessions of an output take. The files of a session that has not changed are not looked at again, and of
// a directory with very many files only some are.

import Encoding
import FileSystem
import FrameBatches
import Glibc
import Synchronization

/// Counts the bytes of sessions. For any thread.
final class OutputBytes: Sendable {
  /// The number of files of one kind in a directory that are looked at.
  private static let maximumLooks = 2_000
  /// Milliseconds after the last change of a directory within which a further change may leave its time as it is.
  private static let settledMs: Int64 = 2_000

  private let output: String
  /// The bytes of sessions, and the times of the last changes of their directories, in nanoseconds.
  private let known = Mutex<[SessionID: (changesNs: [Int64], bytes: SessionBytes)]>([:])

  init(output: String) { self.output = output }

  /// Returns the bytes of a session; nil if it is gone.
  ///
  /// - Parameter nowMs: of the clock of the disk, in unix milliseconds.
  func bytes(of session: SessionID, nowMs: Int64 = WallClock.nowMs) throws(DiskError) -> SessionBytes? {
    let path = output + "/\(session)"
    guard try DurableFile.isDirectory(path) else { return nil }
    let places =
      [path] + [HLSPackage.directory, ThumbnailPackage.directory, ExportedFile.directory].map { path + "/" + $0 }
    let changesNs = (places + [SupersededLists.file(of: session, in: output)]).map(Self.changedNs)
    if let known = known.withLock({ $0[session] }), known.changesNs == changesNs { return known.bytes }
    let superseded = try SupersededLists(output: output).names(of: session)
    var bytes = SessionBytes()
    if let found = try Self.count(in: places[0], by: Kind.init(ofFile:)) {
      (bytes.videos, bytes.segments) = (found[.video].bytes, found[.video].files)
      (bytes.described, bytes.shared) = (found[.described].bytes, found[.shared].bytes + found.own)
    }
    if let found = try Self.count(in: places[1], by: { superseded.contains($0) ? .superseded : .live }) {
      (bytes.live, bytes.superseded) = (found[.live].bytes + found.own, found[.superseded].bytes)
    }
    if let found = try Self.count(in: places[2], by: Kind.init(ofFile:)) {
      bytes.described += found[.described].bytes
      bytes.shared += found[.shared].bytes + found.own
    }
    if let found = try Self.count(in: places[3], by: { _ in .shared }) {
      bytes.shared += found[.shared].bytes + found.own
    }
    let isSettled = changesNs.allSatisfy { $0 / 1_000_000 < nowMs - Self.settledMs }
    let counted = bytes
    known.withLock { $0[session] = isSettled ? (changesNs, counted) : nil }
    return bytes
  }

  /// Forgets all sessions but these.
  func keep(_ sessions: [SessionID]) {
    let all = Set(sessions)
    known.withLock { known in known = known.filter { all.contains($0.key) } }
  }

  /// Returns the time of the last change of a path; 0 if there is nothing.
  private static func changedNs(_ path: String) -> Int64 {
    var status = stat()
    guard lstat(path, &status) == 0 else { return 0 }
    return Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
  }

  private typealias Kind = SessionBytes.Kind

  /// The files of one kind in a directory.
  private struct Tally {
    var files = 0
    /// Those that were looked at, and their bytes.
    var (looks, found) = (0, 0)
    var bytes: Int { looks == 0 ? 0 : Int(Double(found) * Double(files) / Double(looks)) }
  }

  private struct Count {
    /// The bytes of the directory itself.
    var own = 0
    private var tallies = Kind.allCases.map { _ in Tally() }

    subscript(kind: Kind) -> Tally {
      get { tallies[kind.rawValue] }
      set { tallies[kind.rawValue] = newValue }
    }
  }

  /// - Returns: nil if there is no directory.
  private static func count(in path: String, by kind: (String) -> Kind) throws(DiskError) -> Count? {
    let directory: Directory
    do throws(DiskError) {
      directory = try Directory(opening: path, followingLinks: false)
    } catch  where [ENOENT, ENOTDIR, ELOOP].contains(error.code) {
      return nil
    }
    var (count, status) = (Count(), stat())
    if fstat(directory.descriptor, &status) == 0 { count.own = blocks(status) }
    try directory.visit { name in
      if let text = String(validatingCString: name) { count[kind(text)].files += 1 }
    }
    let strides = Kind.allCases.map { max(1, count[$0].files / maximumLooks) }
    var seen = Kind.allCases.map { _ in 0 }
    try directory.visit { name in
      guard let text = String(validatingCString: name) else { return }
      let kind = kind(text)
      seen[kind.rawValue] += 1
      guard isChosen(seen[kind.rawValue], oneOf: strides[kind.rawValue]),
        fstatat(directory.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0
      else { return }
      count[kind].looks += 1
      if status.st_mode & S_IFMT == S_IFREG { count[kind].found += blocks(status) }
    }
    return count
  }

  /// Whether a file is looked at. Sizes may alternate, so the choice has no period.
  private static func isChosen(_ number: Int, oneOf stride: Int) -> Bool {
    (UInt64(number) &* 0x9E37_79B9_7F4A_7C15) >> 32 % UInt64(stride) == 0
  }

  /// Returns the bytes that a file takes; 0 if there is none.
  static func size(of path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? blocks(status) : 0
  }

  /// A file takes whole blocks of the disk.
  private static func blocks(_ status: stat) -> Int { 512 * Int(status.st_blocks) }
}
