// Unpacks archives: in this process, or in another one through an ``ArchiveUnpacker``.

import FileSystem
import Glibc

/// Unpacks archives in a sandboxed process, where a hostile archive can do no harm.
package protocol ArchiveUnpacker {
  /// Reads an archive to its end.
  ///
  /// - Parameters:
  ///   - descriptor: a file or a pipe.
  ///   - name: the batch's name in messages.
  ///   - takesTorn: whether to return what can be read of a damaged archive.
  ///   - cancellation: asked before each part of the file is read.
  /// - Throws: ``BadBatch``, ``DiskError``, ``Cancelled``.
  func unpack(
    _ descriptor: Int32, name: String, limits: Limits, takesTorn: Bool, cancellation: Cancellation
  ) throws -> UnpackedArchive
}

/// The contents of an archive, and a function that the caller calls once: with the session of the archive, or with nil if the
/// archive has no session or several.
package typealias UnpackedArchive = (contents: ArchiveContents, release: (SessionID?) -> Void)

extension ArchiveContents {
  /// Unpacks a trusted archive in this process.
  ///
  /// - Parameter takesTorn: whether to take what can be read of a damaged archive.
  /// - Throws: ``BadBatch``, ``DiskError``, ``Cancelled``.
  package init(
    reading descriptor: Int32, name: String, limits: Limits, takesTorn: Bool = false,
    cancellation: Cancellation = .never
  ) throws {
    var contents = ArchiveContents(limits: limits, fileBytes: Self.size(of: descriptor))
    let file = ArchiveFile(descriptor)
    let input = unsafe ArchiveInput(size: file.size) {
      unsafe cancellation.isRequested ? Int(-ECANCELED) : file.read(at: $0, into: $1)
    }
    do {
      try Archive.unpack(input, name: name, limits: limits, takesTorn: takesTorn) { item in
        guard contents.add(item) else { throw BadBatch("read", name, "too much in it", advice: "split the batch") }
      }
    } catch let bad as BadBatch {
      guard takesTorn else { throw bad }
      contents.breakOff()
    }
    self = contents
  }

  /// Returns the size of a file in bytes; 0 if it is unknown.
  package static func size(of descriptor: Int32) -> Int {
    var status = stat()
    return unsafe fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
  }
}

/// A descriptor of an archive: a file or a pipe. A file is read from its current offset, which does not change.
package final class ArchiveFile {
  /// Bytes of a regular file, at least one; nil for a pipe, which can only be read from front to back.
  package let size: Int?
  private let descriptor: Int32
  private let start: Int
  private var position = 0

  package init(_ descriptor: Int32) {
    self.descriptor = descriptor
    start = Int(lseek(descriptor, 0, SEEK_CUR))
    var status = stat()
    let isFile = unsafe fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && start >= 0
    size = isFile && status.st_size > start ? Int(status.st_size) - start : nil
  }

  /// Maximum bytes that an honest reader asks for: each once, and the directory of a zip a second time.
  package var readLimit: Int { size.map { 2 * min($0, 1 << 40) + 1 << 20 } ?? .max }

  package func canRead(at offset: Int) -> Bool { size.map { (0...$0).contains(offset) } ?? (offset == position) }

  /// Reads some bytes at an offset.
  ///
  /// - Returns: the number of bytes, 0 at the end, or `-errno`.
  package func read(at offset: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
    guard canRead(at: offset) else { return Int(-ESPIPE) }
    while true {
      let count =
        if let size {
          unsafe pread(descriptor, target.baseAddress, min(target.count, size - offset), off_t(start + offset))
        } else {
          unsafe Glibc.read(descriptor, target.baseAddress, target.count)
        }
      if count >= 0 {
        position += count
        return count
      }
      if errno != EINTR { return Int(-errno) }
    }
  }
}
