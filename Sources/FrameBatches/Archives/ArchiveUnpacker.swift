// How a batch comes by what is in an archive: libarchive runs right here, or wherever an unpacker lets it run.

import Glibc

/// Takes archives apart where a hostile one can do no harm.
package protocol ArchiveUnpacker {
  /// Reads an archive to its end.
  ///
  /// - Parameters:
  ///   - descriptor: a file or a pipe.
  ///   - name: what to call it in messages.
  ///   - isCancelled: asked before each part of the file is read.
  /// - Throws: ``BadBatch``, ``DiskError``, ``Cancelled``.
  func unpack(
    _ descriptor: Int32, name: String, limits: Limits, isCancelled: @escaping () -> Bool
  ) throws -> UnpackedArchive
}

/// The contents of an archive, and a function to be called once with the session that the archive belongs to; nil where it is
/// no batch.
package typealias UnpackedArchive = (contents: ArchiveContents, release: (SessionID?) -> Void)

extension ArchiveContents {
  /// Reads an archive right here: for what can be trusted.
  ///
  /// - Throws: ``BadBatch``, ``DiskError``, ``Cancelled``.
  package init(
    reading descriptor: Int32, name: String, limits: Limits, isCancelled: @escaping () -> Bool = { false }
  ) throws {
    var contents = ArchiveContents(limits: limits, fileBytes: Self.size(of: descriptor))
    let input = ArchiveInput { isCancelled() ? Int(-ECANCELED) : Self.read(descriptor, $0) }
    try Archive.unpack(input, name: name, limits: limits) { item in
      guard contents.add(item) else { throw BadBatch("read", name, "too much in it", advice: "split the batch") }
    }
    self = contents
  }

  /// The size of a file, in bytes; 0 where it is not known.
  package static func size(of descriptor: Int32) -> Int {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Fills memory with what comes next.
  ///
  /// - Returns: the number of bytes, or `-errno`.
  package static func read(_ descriptor: Int32, _ target: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      let count = Glibc.read(descriptor, target.baseAddress, target.count)
      if count >= 0 { return count }
      if errno != EINTR { return Int(-errno) }
    }
  }
}
