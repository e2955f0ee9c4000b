// A file as a batch: a zip, a tar, or a stream of records. A tar or stream may have one layer of gzip or zstd. The content decides,
// not the suffix. The file is unpacked into memory once, within limits; no content is written to a file.

import FileSystem

/// A part of an archive's content. Parts come in the archive's order.
/// It is safe: only reading a part's memory is unsafe. That memory is valid during the call that takes the part.
@safe package enum ArchiveItem {
  /// The start of a stream of records: the file is neither a tar nor a zip. All later parts are its bytes.
  case stream
  /// The start of a file of this size. Its bytes follow.
  case file(String, size: Int)
  /// The next bytes of the stream or the file.
  case part(UnsafeRawBufferPointer)
  case refused(RefusedFrame)
}

package struct ArchiveContents: BatchContents {
  package private(set) var names: [String] = []
  package private(set) var recordings: [String] = []
  package private(set) var refused: [RefusedFrame] = []
  package private(set) var refusedRecordings: [RefusedFrame] = []
  package private(set) var stream: [UInt8]?
  private var files: [String: [UInt8]] = [:]

  package var text: StreamContents? { stream.flatMap { StreamContents(.memory($0)).text } }

  private let limits: Limits
  /// Initial capacity for a stream, in bytes.
  private let streamCapacity: Int
  /// The current file, and its bytes that are still missing.
  private var current: (name: String, bytes: [UInt8], missing: Int)?
  private var unpacked = 0

  /// - Parameter fileBytes: the archive's size; 0 if it is unknown.
  package init(limits: Limits, fileBytes: Int) {
    self.limits = limits
    // Images hardly compress, so twice the packed size is nearly always enough. A growing array would need its memory twice.
    // Pages that are never written to take no memory.
    streamCapacity = 2 * min(fileBytes, limits.unpackedBytes / 2)
  }

  package func contents(of name: String, limit: Int) throws -> FileContents? {
    if let stream { return try StreamContents(.memory(stream)).contents(of: name, limit: limit) }
    guard let bytes = files[name] else { return nil }
    return bytes.count <= limit ? .bytes(bytes) : .refused(FileRefusal(size: bytes.count, limit: limit))
  }

  /// Whether all files are complete.
  package var isWhole: Bool { current == nil }

  /// Ends a damaged archive: the bytes of its last file that came are the file.
  package mutating func breakOff() {
    if let torn = current.take() { files[torn.name] = torn.bytes }
  }

  /// Adds the next part.
  ///
  /// - Returns: false if the part exceeds the limits, or repeats a name.
  package mutating func add(_ item: ArchiveItem) -> Bool {
    switch item {
    case .stream:
      guard stream == nil, files.isEmpty else { return false }
      stream = []
      stream?.reserveCapacity(streamCapacity)
    case .file(let name, let size):
      guard stream == nil, current == nil, files[name] == nil, files.count < limits.entries,
        ArchiveEntry.reasonToRefuse(path: name) == nil, (0...limits.frameBytes).contains(size)
      else { return false }
      if isRecording(name) { recordings.append(name) } else { names.append(name) }
      files[name] = []
      guard size > 0 else { return true }
      current = (name, [], size)
      current?.bytes.reserveCapacity(size)
    case .part(let bytes):
      unpacked += bytes.count
      guard unpacked <= limits.unpackedBytes else { return false }
      if stream != nil {
        unsafe stream?.append(contentsOf: bytes)
        return true
      }
      guard let missing = current?.missing, bytes.count <= missing else { return false }
      unsafe current?.bytes.append(contentsOf: bytes)
      current?.missing -= bytes.count
      guard missing == bytes.count, let whole = current.take() else { return true }
      files[whole.name] = whole.bytes
    case .refused(let frame):
      guard refused.count + refusedRecordings.count < limits.entries else { return false }
      if isRecording(frame.source) { refusedRecordings.append(frame) } else { refused.append(frame) }
    }
    return true
  }
}
