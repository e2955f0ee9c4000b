import TestSupport
import Testing

@testable import FrameBatches

/// Zip entries that the reader refuses while it accepts the others.
@Suite struct ZipEntryTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// The second of three entries is invalid. The reader accepts the others.
  static let badEntries = [
    ZipChange("parent", "a name with ..") { $0.entries[1].rename("../1.jpg") },
    ZipChange("parent with backslashes", "a name with ..") { $0.entries[1].rename("a\\..\\..\\1.jpg") },
    ZipChange("absolute", "an absolute name") { $0.entries[1].rename("/1.jpg") },
    ZipChange("absolute with a backslash", "an absolute name") { $0.entries[1].rename("\\1.jpg") },
    ZipChange("without a name", "an entry without a name") { $0.entries[1].rename("") },
    ZipChange("NUL", "a name with a NUL in it") { $0.entries[1].rename("1\0.jpg") },
    ZipChange("too long", "a name that is too long") { $0.entries[1].rename(String(repeating: "a", count: 1_025)) },
    ZipChange("accent behind the slash", "a name with ..") { $0.entries[1].rename("../\u{301}1.jpg") },
    ZipChange("symbolic link", "a link") { $0.entries[1].mode = 0o120777 },
    ZipChange("device", "not a regular file") { $0.entries[1].mode = 0o020666 },
    ZipChange("same name", "a second entry of the same name") {
      $0.entries[1].rename(String(decoding: $0.entries[0].name, as: UTF8.self))
    },
    ZipChange("same name with a dot", "a second entry of the same name") {
      $0.entries[1].rename("./" + String(decoding: $0.entries[0].name, as: UTF8.self))
    },
    ZipChange("encrypted", "encrypted") { $0.entries[1].flags = 1 },
    ZipChange("strongly encrypted", "encrypted") { $0.entries[1].flags = 0x41 },
    ZipChange("AES", "encrypted") { ($0.entries[1].method, $0.entries[1].localMethod) = (99, 99) },
    ZipChange("bzip2", "compressed with method 12: pack it with deflate") {
      ($0.entries[1].method, $0.entries[1].localMethod) = (12, 12)
    },
    ZipChange("no deflate", "damaged: it does not unpack to") {
      ($0.entries[1].method, $0.entries[1].localMethod) = (8, 8)
    },
    ZipChange("too small when unpacked", "damaged: it does not unpack to") {
      $0.entries[1].deflate()
      $0.entries[1].size += 1
      $0.entries[1].localSize += 1
    },
    ZipChange("too large when unpacked", "damaged: it does not unpack to") {
      $0.entries[1].deflate()
      $0.entries[1].size -= 1
      $0.entries[1].localSize -= 1
    },
    ZipChange("bytes behind the end of deflate", "damaged: it does not unpack to") {
      $0.entries[1].deflate()
      $0.entries[1].packed += [0, 0]
      $0.entries[1].packedSize += 2
    },
    ZipChange("stored in another size", "damaged: its sizes contradict each other") { $0.entries[1].size += 1 },
    ZipChange("more than deflate can", "damaged: its sizes contradict each other") {
      $0.entries[1].deflate()
      ($0.entries[1].size, $0.entries[1].localSize) = (100 << 20, 100 << 20)
    },
    ZipChange("huge", "bytes, more than the limit of") {
      $0.entries[1].deflate()
      $0.entries[1].size = 200 << 20
      $0.entries[1].localSize = 200 << 20
      $0.entries[1].packed += [UInt8](repeating: 0, count: 250_000)
      $0.entries[1].packedSize += 250_000
    },
    ZipChange("checksum", "damaged: its checksum is wrong") {
      $0.entries[1].checksum ^= 1
      $0.entries[1].localChecksum ^= 1
    },
    ZipChange("checksum of deflate", "damaged: its checksum is wrong") {
      $0.entries[1].deflate()
      $0.entries[1].packed[20] ^= 1
    },
    ZipChange("local name", "damaged: its local header has another name") { $0.entries[1].localName[0] ^= 1 },
    ZipChange("local method", "damaged: its local header has another method") { $0.entries[1].localMethod = 8 },
    ZipChange("local size", "damaged: its local header has another size") { $0.entries[1].localSize += 1 },
    ZipChange("local zip64 size", "damaged: its local header has another size") {
      $0.entries[1].localSize = 0xFFFF_FFFF
      $0.entries[1].localExtra = [1, 0, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    },
    ZipChange("local checksum", "damaged: its local header has another checksum") {
      $0.entries[1].localChecksum ^= 1
    },
    ZipChange("no local header", "damaged: it has no local header") {
      // Inside the entry's own picture data, where no header is.
      $0.entries[1].offset = 30 + $0.entries[0].name.count + $0.entries[0].packed.count + 100
      $0.entries[1].packedSize = 10
      $0.entries[1].size = 10
    },
  ]

  @Test(arguments: badEntries) func badEntryIsRefusedAndTheOthersAreTaken(change: ZipChange) throws {
    var archive = try ZipArchive.frames()
    change.make(&archive)
    let source = try BatchReader(reading: scratch.file("s.zip", archive.bytes))
    #expect(source.batch.frames.map(\.timeMs) == [1_767_859_512_340, 1_767_859_514_340])
    #expect(source.batch.refused.count == 1)
    #expect(source.batch.refused[0].reason.contains(change.message), "\(source.batch.refused)")
  }
}

/// A test case: a name, and a change to a valid archive of three frames.
struct ZipChange: Sendable, CustomTestStringConvertible {
  let name: String
  let message: String
  let make: @Sendable (inout ZipArchive) -> Void

  init(_ name: String, _ message: String, _ make: @escaping @Sendable (inout ZipArchive) -> Void) {
    (self.name, self.message, self.make) = (name, message, make)
  }

  var testDescription: String { name }
}

extension ZipArchive.Entry {
  mutating func rename(_ name: String) {
    (self.name, localName) = (Array(name.utf8), Array(name.utf8))
  }

  /// Returns the bytes as one stored deflate block (RFC 1951, 3.2.4).
  mutating func deflate() {
    let count = [UInt8(packed.count & 255), UInt8(packed.count >> 8)]
    packed = [1] + count + count.map { ~$0 } + packed
    (method, localMethod, packedSize) = (8, 8, packed.count)
  }
}

extension ZipArchive {
  /// Makes frames at intervals of one second.
  static func frames(_ count: Int = 3) throws -> ZipArchive {
    ZipArchive(try (0..<count).map { Entry("\(1_767_859_512_340 + 1_000 * $0).jpg", try BatchTests.jpeg) })
  }

  /// Adds the zip64 end record, with this number of entries.
  mutating func widen(count: Int) {
    let body = entries.reduce(0) { $0 + 30 + $1.localName.count + $1.localExtra.count + $1.packed.count }
    let directory = entries.reduce(0) { $0 + 46 + $1.name.count }
    wide = (count, directory, body)
  }
}
