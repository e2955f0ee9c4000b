// A file as a batch: a zip, a tar, or a stream of records; the last two plain or in one layer of gzip or zstd, all recognised by
// content. It is read once into memory, within limits; nothing is ever unpacked to a file.

import FileSystem

/// A part of an archive's content. Parts come in the archive's order.
package enum ArchiveItem {
  /// It is neither tar nor zip: all that follows is one stream of records.
  case stream
  /// A file of so many bytes begins, which follow.
  case file(String, size: Int)
  /// Some bytes of the stream, or of the file.
  case part(UnsafeRawBufferPointer)
  case refused(RefusedFrame)
}

package struct ArchiveContents: BatchContents {
  package private(set) var names: [String] = []
  package private(set) var refused: [RefusedFrame] = []
  package private(set) var stream: [UInt8]?
  private var files: [String: [UInt8]] = [:]

  package var text: StreamContents? { stream.flatMap { StreamContents(.memory($0)).text } }

  private let limits: Limits
  /// How much memory is asked for at once for a stream, in bytes.
  private let streamCapacity: Int
  /// The file whose bytes come now, how many are still to come, and how many have come of all files.
  private var current: (name: String, bytes: [UInt8], missing: Int)?
  private var unpacked = 0

  /// - Parameter fileBytes: the archive's size, as far as it is known.
  package init(limits: Limits, fileBytes: Int) {
    self.limits = limits
    // Images hardly pack, so this is nearly always enough, and an array that grows is there twice; pages that are never
    // written to take no memory.
    streamCapacity = 2 * min(fileBytes, limits.unpackedBytes / 2)
  }

  package func contents(of name: String, limit: Int) throws -> FileContents? {
    if let stream { return try StreamContents(.memory(stream)).contents(of: name, limit: limit) }
    guard let bytes = files[name] else { return nil }
    return bytes.count <= limit ? .bytes(bytes) : .refused("\(bytes.count) bytes, more than the limit of \(limit)")
  }

  /// Whether all bytes of each file are there.
  package var isWhole: Bool { current == nil }

  /// Takes what comes next.
  ///
  /// - Returns: whether it can be: within limits, and under a name that is not there yet.
  package mutating func add(_ item: ArchiveItem) -> Bool {
    switch item {
    case .stream:
      guard stream == nil, names.isEmpty else { return false }
      stream = []
      stream?.reserveCapacity(streamCapacity)
    case .file(let name, let size):
      guard stream == nil, current == nil, files[name] == nil, names.count < limits.entries,
        ArchiveEntry.reasonToRefuse(path: name) == nil, (0...limits.frameBytes).contains(size)
      else { return false }
      names.append(name)
      files[name] = []
      guard size > 0 else { return true }
      current = (name, [], size)
      current?.bytes.reserveCapacity(size)
    case .part(let bytes):
      unpacked += bytes.count
      guard unpacked <= limits.unpackedBytes else { return false }
      if stream != nil {
        stream?.append(contentsOf: bytes)
        return true
      }
      guard let missing = current?.missing, bytes.count <= missing else { return false }
      current?.bytes.append(contentsOf: bytes)
      current?.missing -= bytes.count
      guard missing == bytes.count, let whole = current.take() else { return true }
      files[whole.name] = whole.bytes
    case .refused(let frame):
      guard refused.count < limits.entries else { return false }
      refused.append(frame)
    }
    return true
  }
}
