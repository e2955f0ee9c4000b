@testable import FileSystem
@testable import FrameBatches
@testable import JSON
@testable import WorkQueues

/// A container made of a fuzzer's bytes, without the checksums and lengths of an archive, at which most mutations would
/// end.
///
/// The first line is the batch's name, with a slash at its end if the batch is a directory. The files follow, separated
/// by 0x1E. In each file, 0x1F separates the name from the bytes. A name that begins with `../` means a file beside the
/// batch.
struct FuzzedContents: BatchContents {
  let isDirectory: Bool
  private(set) var names: [String] = []
  private(set) var refused: [RefusedFrame] = []
  private var files: [String: [UInt8]] = [:]

  var topNames: [String] { isDirectory ? names.filter { !$0.contains("/") } : names }

  /// Returns nil if there are more entries than the limit for real containers.
  init?(_ bytes: ArraySlice<UInt8>, isDirectory: Bool, limits: Limits) {
    self.isDirectory = isDirectory
    let records = bytes.split(separator: 0x1E)
    guard records.count <= limits.entries else { return nil }
    for record in records {
      let parts = record.split(separator: 0x1F, maxSplits: 1, omittingEmptySubsequences: false)
      add(printableName(Array(parts[0])), parts.count == 2 ? Array(parts[1]) : [])
    }
  }

  private mutating func add(_ name: String, _ bytes: [UInt8]) {
    let isBeside = isDirectory && name.hasPrefix("../") && !name.dropFirst(3).contains("/")
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    if name.isEmpty || parts.contains("") || parts.contains("..") && !isBeside {
      refused.append(RefusedFrame(source: name, reason: "a name that leads elsewhere"))
    } else if files[name] != nil {
      refused.append(RefusedFrame(source: name, reason: "a second entry of the same name"))
    } else if !isRecorderJunk(name) {
      files[name] = bytes
      if !isBeside { names.append(name) }
    }
  }

  func contents(of name: String, limit: Int) throws -> FileContents? {
    guard let bytes = files[name], !name.hasPrefix("../") else { return nil }
    return bytes.count <= limit ? .bytes(bytes) : .refused(FileRefusal(size: bytes.count, limit: limit))
  }

  func sideFile(_ name: String, limit: Int) throws -> FileContents? {
    try contents(of: name, limit: limit) ?? files["../" + name].map { .bytes(Array($0.prefix(limit))) }
  }
}
