import CLinux
import Glibc

@testable import FileSystem
@testable import FrameBatches
@testable import Sessions
@testable import WorkQueues

/// Reads any file as an archive: zip, tar or a stream, the last two plain or compressed.
enum ArchiveFuzzing {
  static func read(_ bytes: [UInt8]) {
    let limits = FuzzTarget.limits
    rewrite(withValidChecksums(bytes))
    do {
      let contents = try ArchiveContents(reading: file, name: "fuzzed", limits: limits)
      require((contents.stream?.count ?? 0) <= limits.unpackedBytes, "a stream within limits")
      require(contents.names.count + contents.refused.count <= limits.entries, "entries within limits")
      require(Set(contents.names).count == contents.names.count, "no name twice")
      var unpacked = 0
      for name in contents.names {
        require(!name.isEmpty && !name.hasPrefix("/"), "names of files in the archive")
        require(!name.split(separator: "/").contains(".."), "names without '..'")
        guard case .bytes(let bytes)? = try contents.contents(of: name, limit: limits.unpackedBytes) else {
          fatalError("broken promise: a file's bytes")
        }
        unpacked += bytes.count
      }
      require(unpacked <= limits.unpackedBytes, "an archive within limits")
    } catch {
      FormatFuzzing.check(error, batch: "fuzzed")
    }
  }

  /// Created once for all runs.
  private static let file = {
    let descriptor = clinux_memory_file()
    require(descriptor >= 0, "a file in memory")
    return descriptor
  }()

  private static func rewrite(_ bytes: [UInt8]) {
    require(ftruncate(file, 0) == 0 && pwrite(file, bytes, bytes.count, 0) == bytes.count, "a writable file in memory")
    lseek(file, 0, SEEK_SET)
  }

  /// Writes correct checksums into blocks that look like a tar header (POSIX.1-1988, 10.1.1: the sum of the bytes, with
  /// spaces in the checksum field). Without them the reader rejects nearly every mutation at once.
  private static func withValidChecksums(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for block in stride(from: 0, to: bytes.count - bytes.count % 512, by: 512)
    where bytes[(block + 257)...].starts(with: "ustar".utf8) {
      let field = block + 148..<block + 156
      bytes.replaceSubrange(field, with: "        ".utf8)
      let digits = String(bytes[block..<block + 512].reduce(0) { $0 + Int($1) }, radix: 8)
      bytes.replaceSubrange(field, with: (String(repeating: "0", count: 6 - digits.count) + digits + "\0 ").utf8)
    }
    return bytes
  }

  /// Writes the directory's offset and length into the end record of a zip. Without them the reader rejects nearly
  /// every mutation at once.
  static func withValidPlaces(_ bytes: [UInt8]) -> [UInt8] {
    func places(of signature: [UInt8]) -> [Int] {
      bytes.indices.dropLast(3).filter { bytes[$0...].starts(with: [0x50, 0x4B] + signature) }
    }
    guard let end = places(of: [5, 6]).last, bytes.count - end >= 22 else { return bytes }
    let entries = places(of: [1, 2]).filter { $0 < end }
    // The zip64 record, if there is one, is behind the directory.
    let directoryEnd = places(of: [6, 6]).last { $0 < end } ?? end
    let start = entries.first ?? directoryEnd
    let numbers = [(8, 2, entries.count), (10, 2, entries.count), (12, 4, directoryEnd - start), (16, 4, start)]
    var bytes = bytes
    for (offset, count, value) in numbers + [(20, 2, bytes.count - end - 22)] {
      for index in 0..<count { bytes[end + offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
    }
    return bytes
  }
}
