import FileSystem

/// The files of a batch, whatever its format: for a report on a batch that cannot be encoded.
package struct BatchFileList {
  /// A file of a batch.
  package struct File {
    package let name: String
    /// Nil if it is not read.
    package let bytes: [UInt8]?
    /// The reason why it is not read.
    package let refusal: String?
  }

  /// Calls `body` with each file, in the order of the container. A stream of records is one file without a name.
  ///
  /// - Parameters:
  ///   - path: a directory or a file.
  ///   - unpacker: unpacks archives in another process; nil to unpack trusted archives in this process.
  /// - Throws: ``BadBatch`` if the container cannot be read, ``DiskError``.
  package static func forEach(
    of path: String, limits: Limits, unpacker: (any ArchiveUnpacker)?, _ body: (File) throws -> Void
  ) throws {
    let opened = try OpenedBatch(reading: path, files: [], InputOptions(), limits, unpacker, .never)
    defer { opened.release(nil) }
    let contents = opened.source.contents
    if let stream = contents.stream ?? contents.text.flatMap({ try? $0.bytes(0..<min($0.count, limits.frameBytes)) }) {
      try body(File(name: "", bytes: stream, refusal: nil))
    }
    for name in contents.names + contents.recordings {
      switch try contents.contents(of: name, limit: limits.frameBytes) {
      case .bytes(let bytes)?: try body(File(name: name, bytes: bytes, refusal: nil))
      case .refused(let refusal)?: try body(File(name: name, bytes: nil, refusal: "\(refusal)"))
      case nil: try body(File(name: name, bytes: nil, refusal: "missing"))
      }
    }
    for refused in contents.refused + contents.refusedRecordings {
      try body(File(name: refused.source, bytes: nil, refusal: refused.reason))
    }
  }
}
