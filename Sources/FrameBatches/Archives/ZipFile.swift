import FileSystem
import Glibc

/// The bytes of a zip archive, at any offset, because the directory is at the end. An archive from a pipe is kept in memory.
/// It is safe: its source only gets the memory of an array that is made here.
@safe final class ZipFile {
  /// The size of the archive in bytes.
  let count: Int
  let name: String
  private let source: ArchiveInput.RandomSource
  /// The bytes of the last read, and their offset.
  private var window: [UInt8] = []
  private var windowStart = 0

  private static let partBytes = 256 << 10

  init(_ input: ArchiveInput, name: String, limits: Limits) throws {
    self.name = name
    if let size = input.size {
      unsafe (count, source) = (size, input.source)
      return
    }
    let (parts, count) = try Self.parts(of: input, name, limits)
    self.count = count
    unsafe source = { offset, target in
      let index = offset / Self.partBytes
      guard parts.indices.contains(index) else { return 0 }
      let part = parts[index][(offset % Self.partBytes)...].prefix(target.count)
      unsafe target.copyBytes(from: part)
      return part.count
    }
  }

  /// Reads a pipe to its end. All parts but the last have the same size.
  private static func parts(of input: ArchiveInput, _ name: String, _ limits: Limits) throws -> ([[UInt8]], Int) {
    var (parts, total) = ([[UInt8]](), 0)
    var start: UnsafeRawPointer?
    while true {
      let count = unsafe input.read(&start)
      if case .source(let code)? = input.failure { throw failure(code, name) }
      guard count > 0 else { return (parts, total) }
      total += count
      guard total <= limits.unpackedBytes else { throw Archive.isTooLarge(name, limits) }
      var rest = unsafe UnsafeRawBufferPointer(start: start, count: count)[...]
      while unsafe !rest.isEmpty {
        if (parts.last?.count ?? partBytes) == partBytes {
          parts.append([])
          parts[parts.count - 1].reserveCapacity(partBytes)
        }
        let some = unsafe rest.prefix(partBytes - parts[parts.count - 1].count)
        unsafe parts[parts.count - 1].append(contentsOf: some)
        unsafe rest = rest.dropFirst(some.count)
      }
    }
  }

  private static func failure(_ code: Int32, _ name: String) -> any Error {
    code == ECANCELED ? Cancelled() : DiskError("read", name, code: code)
  }

  /// An error of the archive as a whole.
  func bad(_ cause: String) -> BadBatch {
    BadBatch(
      "read", name, "a broken zip archive: \(cause)",
      advice: "pack it again; send it complete, under a name that is not there before it is whole")
  }

  /// Returns the bytes of a range. Ascending ranges read each byte once.
  func bytes(_ range: Range<Int>) throws -> ArraySlice<UInt8> {
    guard range.lowerBound >= 0, range.upperBound <= count else { throw bad("it breaks off") }
    let windowEnd = windowStart + window.count
    if range.lowerBound < windowStart || range.upperBound > windowEnd {
      let isInside = (windowStart...windowEnd).contains(range.lowerBound)
      let start = isInside ? windowEnd : range.lowerBound
      let kept = isInside ? Array(window.suffix(windowEnd - range.lowerBound)) : []
      window = kept + (try read(start..<min(count, max(range.upperBound, start + Self.partBytes))))
      windowStart = range.lowerBound
      guard window.count >= range.count else { throw bad("it breaks off") }
    }
    return window[(range.lowerBound - windowStart)..<(range.upperBound - windowStart)]
  }

  private func read(_ range: Range<Int>) throws -> [UInt8] {
    var outcome = 1
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: range.count) { bytes, filled in
      while filled < range.count, outcome > 0 {
        let target = unsafe UnsafeMutableRawBufferPointer(
          rebasing: UnsafeMutableRawBufferPointer(bytes)[filled..<range.count])
        outcome = unsafe source(range.lowerBound + filled, target)
        filled += max(0, outcome)
      }
    }
    if outcome < 0 { throw Self.failure(Int32(-outcome), name) }
    return bytes
  }
}
