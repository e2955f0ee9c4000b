import Foundation
import Glibc
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

@Suite struct ZipTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  private func read(_ archive: ZipArchive, limits: Limits = Limits()) throws -> BatchReader {
    try BatchReader(reading: scratch.file("s.zip", archive.bytes), limits: limits)
  }

  static let badArchives = [
    ZipChange("overlap", "reaches into the next entry") {
      $0.entries[0].packedSize += 10
      $0.entries[0].size += 10
    },
    ZipChange("same place", "reaches into the next entry") { $0.entries[1].offset = 0 },
    ZipChange("local fields over the next entry", "reaches into the next entry") {
      // The central directory does not list these fields, and the remaining file is long enough for them.
      $0.entries[1].localExtra = [UInt8](repeating: 0, count: 400)
      $0.entries[2].offset = 2 * (30 + $0.entries[0].name.count + $0.entries[0].packed.count) + 300
    },
    ZipChange("overlap with the directory", "reaches into the next entry") {
      $0.entries[2].packedSize += 20
      $0.entries[2].size += 20
    },
    ZipChange("entry behind the directory", "reaches into the next entry") { $0.entries[2].offset = 0x7FFF_FFFF },
    ZipChange("fewer than there are", "entry 3 of 2 in its directory") { $0.count = 2 },
    ZipChange("count too large", "3 entries in its directory, and not 4") { $0.count = 4 },
    ZipChange("directory elsewhere", "its directory is not where") { $0.directoryOffset = 0 },
    ZipChange("directory of another size", "its directory is not where") { $0.directorySize = 10 },
    ZipChange("huge count", "more than 20000 entries") { $0.count = 65_535 },
    ZipChange("zip64 of another count", "its two end records differ") { $0.widen(count: 4) },
    ZipChange("zip64 of a huge count", "more than 20000 entries") {
      $0.count = 65_535
      $0.widen(count: 65_536)
    },
    ZipChange("zip64 beyond all numbers", "more than 20000 entries") {
      $0.count = 65_535
      $0.widen(count: -1)
    },
    ZipChange("zip64 directory beyond the file", "its directory is not where") {
      $0.directoryOffset = 0xFFFF_FFFF
      $0.widen(count: 3)
      $0.wide?.offset = .max
    },
  ]

  @Test(arguments: badArchives) func brokenArchiveIsRefusedWithTheReason(change: ZipChange) throws {
    var archive = try ZipArchive.frames()
    change.make(&archive)
    let error = #expect(throws: BadBatch.self) { try read(archive) }
    #expect(error?.cause.contains(change.message) == true, "\(error?.cause ?? "")")
  }

  @Test func truncatedZipIsRefusedAtAnyLength() throws {
    let whole = try ZipArchive.frames().bytes
    _ = try BatchReader(reading: scratch.file("s.zip", whole))
    for cut in Array(stride(from: 4, to: whole.count - 400, by: 997)) + (whole.count - 400..<whole.count) {
      let path = try scratch.file("cut.zip", Array(whole[..<cut]))
      let error = #expect(throws: BadBatch.self, "cut at \(cut)") { try BatchReader(reading: path) }
      #expect(error?.cause == "a broken zip archive: it breaks off: no end record")
    }
    let path = try scratch.file("longer.zip", whole + [0])
    #expect(throws: BadBatch.self) { try BatchReader(reading: path) }
  }

  /// The comment contains bytes that look like another end record.
  @Test func endRecordIsTheLastWhoseCommentEndsTheFile() throws {
    var archive = try ZipArchive.frames(1)
    archive.comment = ZipArchive([]).bytes + [1, 2, 3]
    #expect(try read(archive).batch.frames.count == 1)
    archive.comment = [UInt8](repeating: 0x50, count: 65_535)
    #expect(try read(archive).batch.frames.count == 1)
  }

  @Test func archiveWithoutEntriesIsRefused() throws {
    #expect(throws: BadBatch("read", "s.zip", "nothing in it", advice: BadBatch.adviceOnForms)) {
      try read(ZipArchive([]))
    }
  }

  /// The central directory declares the unpacked sizes, so the reader refuses the archive before it unpacks anything.
  @Test func bombIsRefusedByItsDirectory() throws {
    let script = """
      import sys, zipfile
      with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as archive:
          for number in range(int(sys.argv[2])):
              archive.writestr(f"{1767859512340 + number}.jpg", bytes(1 << 20))
      """
    let path = scratch.path("bomb.zip")
    try Tool.output(Tool.python, ["-c", script, path, "33"])
    let tight = #expect(throws: BadBatch.self) { try BatchReader(reading: path) }
    #expect(tight?.cause == "unpacks to more than 200 times its size")
    var limits = Limits()
    limits.unpackedBytes = 32 << 20
    let large = #expect(throws: BadBatch.self) { try BatchReader(reading: path, limits: limits) }
    #expect(large?.cause == "unpacks to more than the limit of 33554432 bytes")
    // A small archive may have the compression ratio of a zip bomb.
    try Tool.output(Tool.python, ["-c", script, path, "3"])
    #expect(try BatchReader(reading: path).batch.frames.count == 3)
  }

  @Test func archiveInsideOfAnArchiveIsNotUnpacked() throws {
    let inner = try ZipArchive.frames().bytes
    let error = #expect(throws: BadBatch.self) { try read(ZipArchive([ZipArchive.Entry("inner.zip", inner)])) }
    #expect(error?.cause == "no known format: 'inner.zip' is a zip archive")
    var archive = try ZipArchive.frames()
    archive.entries.append(ZipArchive.Entry("inner.zip", inner))
    #expect(try read(archive).batch.refused.map(\.source) == ["inner.zip"])
  }

  /// The flag of UTF-8 is forgotten, or set for other names. In Shift-JIS, the second byte of a letter may be a backslash.
  @Test(arguments: [0, 0x800]) func namesOfAnyEncodingAreReadAndStayDistinct(flags: Int) throws {
    var archive = try ZipArchive.frames(6)
    let letters: [[UInt8]] = [[0xE4], [0x84], [0x96], [0x95, 0x5C], [0x95, 0x5D], Array("ä".utf8)]
    for (index, letter) in letters.enumerated() {
      archive.entries[index].name = letter + Array("/".utf8) + archive.entries[index].name
      archive.entries[index].localName = archive.entries[index].name
      archive.entries[index].flags = flags
    }
    let batch = try read(archive).batch
    #expect(batch.frames.count == 6 && batch.refused.isEmpty, "\(batch.refused)")
    #expect(Set(batch.frames.flatMap(\.paths)).count == 6)
  }

  @Test func directoriesAndJunkAreIgnored() throws {
    var archive = try ZipArchive.frames()
    var folder = ZipArchive.Entry("frames", [])
    folder.mode = 0o040755
    archive.entries += [
      ZipArchive.Entry("frames/", []), ZipArchive.Entry("other\\", []), folder,
      ZipArchive.Entry("__MACOSX/._1767859512340.jpg", [1]), ZipArchive.Entry(".DS_Store", [1]),
    ]
    let batch = try read(archive).batch
    #expect(batch.frames.count == 3 && batch.refused.isEmpty)
  }

  /// The reader must not ignore a damaged description, because it would then ignore the masks.
  @Test func damagedDescriptionRefusesTheBatch() throws {
    var archive = try ZipArchive.frames()
    archive.entries.append(ZipArchive.Entry("batch.json", Array("{}".utf8)))
    archive.entries[3].checksum ^= 1
    archive.entries[3].localChecksum ^= 1
    let error = #expect(throws: BadBatch.self) { try read(archive) }
    #expect(error?.cause == "batch.json is damaged: its checksum is wrong")
  }

  /// The central directory may list entries in an order different from that in the file.
  @Test func everyByteIsReadOnceOrTwice() throws {
    let bytes = try ZipArchive.frames(40).bytes
    var read = 0
    let input = ArchiveInput(size: bytes.count) { offset, target in
      guard offset < bytes.count else { return 0 }
      let part = bytes[offset...].prefix(min(target.count, 10_000))
      target.copyBytes(from: part)
      read += part.count
      return part.count
    }
    var files = 0
    try Archive.unpack(input, name: "s", limits: Limits()) { if case .file = $0 { files += 1 } }
    #expect(files == 40)
    #expect(read <= 2 * bytes.count + 1 << 20)
  }

  @Test func archiveFromAPipeIsReadToMemoryWithinLimits() throws {
    let bytes = try ZipArchive.frames(60).bytes
    func unpack(_ limits: Limits) throws -> Int {
      var rest = bytes[...]
      let input = ArchiveInput { target in
        let part = rest.prefix(min(target.count, 77_777))
        target.copyBytes(from: part)
        rest = rest.dropFirst(part.count)
        return part.count
      }
      var contents = ArchiveContents(limits: Limits(), fileBytes: 0)
      try Archive.unpack(input, name: "stdin", limits: limits) { item in
        let isTaken = contents.add(item)
        #expect(isTaken)
      }
      for name in contents.names {
        guard case .bytes(let file)? = try contents.contents(of: name, limit: 1 << 20) else { continue }
        #expect(try file == BatchTests.jpeg)
      }
      return contents.names.count
    }
    #expect(try unpack(Limits()) == 60)
    var limits = Limits()
    limits.unpackedBytes = bytes.count - 1
    #expect(throws: BadBatch.self) { try unpack(limits) }
  }

  @Test func archiveIsReadFromTheDescriptorOffset() throws {
    let path = try scratch.file("s.zip", Array("before".utf8) + ZipArchive.frames().bytes)
    let file = open(path, O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    lseek(file, 6, SEEK_SET)
    #expect(try ArchiveContents(reading: file, name: "s", limits: Limits()).names.count == 3)
    #expect(lseek(file, 0, SEEK_CUR) == 6)
  }
}
