import Foundation
import Glibc
import TestSupport
import Testing

@testable import FileSystem
@testable import FrameBatches

@Suite struct ArchiveTests {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  /// A tar archive that common tools do not write: entries of (type, name, link target, bytes).
  private func tar(_ entries: [(type: Character, name: String, link: String, bytes: [UInt8])], ended: Bool = true)
    -> [UInt8]
  {
    var result: [UInt8] = []
    for entry in entries {
      var header = [UInt8](repeating: 0, count: 512)
      func put(_ text: String, at offset: Int) {
        header.replaceSubrange(offset..<offset + text.utf8.count, with: text.utf8)
      }
      put(entry.name, at: 0)
      put("0000644\u{0}0000000\u{0}0000000\u{0}", at: 100)
      let size = String(entry.bytes.count, radix: 8)
      put(String(repeating: "0", count: 11 - size.count) + size, at: 124)
      put("00000000000", at: 136)
      put("        ", at: 148)
      put(String(entry.type), at: 156)
      put(entry.link, at: 157)
      put("ustar\u{0}00", at: 257)
      let sum = String(header.reduce(0) { $0 + Int($1) }, radix: 8)
      put(String(repeating: "0", count: 6 - sum.count) + sum + "\u{0} ", at: 148)
      result += header + entry.bytes + [UInt8](repeating: 0, count: (512 - entry.bytes.count % 512) % 512)
    }
    return result + (ended ? [UInt8](repeating: 0, count: 1_024) : [])
  }

  /// The read also fails while libarchive detects the format. libarchive then reports only an unknown format.
  @Test func unreadableArchiveIsADiskError() throws {
    // Address 0 of a process is unmapped, so a read from it is an I/O error.
    let unreadable = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
    defer { close(unreadable) }
    try #require(unreadable >= 0)
    let failure = #expect(throws: DiskError.self) {
      try ArchiveContents(reading: unreadable, name: "batch.tar", limits: Limits())
    }
    #expect(failure == DiskError("read", "batch.tar", code: EIO))
  }

  @Test func onlyRegularEntriesWithPlainNamesAreAccepted() throws {
    let image = try BatchTests.jpeg
    let file = try scratch.file(
      "s.tar",
      tar([
        ("0", "1767859512340.jpg", "", image), ("0", "../1767859513340.jpg", "", image),
        ("0", "/1767859514340.jpg", "", image), ("2", "1767859515340.jpg", "/etc/passwd", []),
        ("1", "1767859516340.jpg", "1767859512340.jpg", []), ("6", "1767859517340.jpg", "", []),
        ("3", "1767859518340.jpg", "", []), ("0", "1767859512340.jpg", "", [1]), ("5", "dir/", "", []),
        ("0", "._1767859519340.jpg", "", [1]),
      ]))
    let source = try BatchReader(reading: file)
    #expect(source.batch.frames.map(\.source) == ["1767859512340.jpg"])
    #expect(
      source.batch.refused.map { "\($0.source): \($0.reason)" } == [
        "../1767859513340.jpg: a name with ..", "/1767859514340.jpg: an absolute name", "1767859515340.jpg: a link",
        "1767859516340.jpg: a link", "1767859517340.jpg: not a regular file", "1767859518340.jpg: not a regular file",
        "1767859512340.jpg: a second entry of the same name",
      ])
    guard case .bytes(let bytes) = try source.images(of: source.batch.frames[0])[0] else {
      Issue.record("the frame has no bytes")
      return
    }
    #expect(bytes == image)
  }

  @Test(arguments: ["ustar", "gnu", "posix"]) func tarWithNamesThatAreNotUTF8IsRead(format: String) throws {
    let folder = try scratch.directory("latin")
    for number in 0..<2 {
      let name: [CChar] = (folder + "/176785951\(number)340-").utf8CString.dropLast() + [-28] + ".jpg".utf8CString
      let path = try scratch.file("picture", BatchTests.jpeg)
      try #require(rename(path, name) == 0)
    }
    let file = scratch.path("latin.tar")
    try Tool.output("tar", ["--format", format, "-cf", file, "-C", scratch.path, "latin"])
    let contents = try ArchiveContents(reading: open(file, O_RDONLY | O_CLOEXEC), name: "latin", limits: Limits())
    #expect(contents.names.sorted() == ["latin/1767859510340-%E4.jpg", "latin/1767859511340-%E4.jpg"])
    #expect(contents.refused.isEmpty)
  }

  /// A truncated archive is refused at any length. The reader never returns a batch with fewer frames.
  @Test(arguments: ["tar", "tar.gz", "tar.zst"])
  func truncatedTarIsRefusedAtAnyLength(suffix: String) throws {
    let whole = scratch.path("s.\(suffix)")
    try Tool.output("tar", ["-b1", "-caf", whole, "-C", Fixture("odd-size").path, "."])
    let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: whole)))
    _ = try BatchReader(reading: whole)
    // A plain tar ends with 1024 zero bytes (two blocks). One block is sufficient.
    let last = suffix == "tar" ? bytes.count - 1_024 : bytes.count - 1
    let cuts =
      Array(stride(from: 1, through: last, by: max(1, last / 97))) + [last] + stride(from: 512, to: last, by: 512)
    for cut in cuts {
      let path = try scratch.file("cut.\(suffix)", Array(bytes[..<cut]))
      #expect(throws: BadBatch.self, "cut at \(cut) of \(bytes.count)") { try BatchReader(reading: path) }
    }
  }

  /// Impossibly large sizes, in each encoding that a tar header allows.
  @Test(
    arguments: [
      [0x80, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE], Array("77777777777\u{0}".utf8),
      [0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0],
      [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
    ] as [[UInt8]])
  func impossibleEntrySizeIsRefused(size: [UInt8]) throws {
    for name in ["1767859513340.jpg", "._junk", "../up"] {
      var bytes = tar([("0", "1767859512340.jpg", "", try BatchTests.jpeg)], ended: false)
      var header = tar([("0", name, "", [])], ended: false)
      header.replaceSubrange(124..<136, with: size)
      header.replaceSubrange(148..<156, with: "        ".utf8)
      let sum = String(header.reduce(0) { $0 + Int($1) }, radix: 8)
      header.replaceSubrange(148..<156, with: (String(repeating: "0", count: 6 - sum.count) + sum + "\u{0} ").utf8)
      bytes += header + [UInt8](repeating: 0, count: 1_024)
      let path = try scratch.file("absurd.tar", bytes)
      #expect(throws: BadBatch.self) { try BatchReader(reading: path) }
    }
  }

  @Test func tarWithoutEndBlockIsRefusedWithAnyCompression() throws {
    let entry: (Character, String, String, [UInt8]) = ("0", "1767859512340.jpg", "", try BatchTests.jpeg)
    for ended in [false, true] {
      let plain = try scratch.file("s.tar", tar([entry], ended: ended))
      try Tool.output("gzip", ["-kf", plain])
      try Tool.output("zstd", ["-qf", plain])
      for path in [plain, plain + ".gz", plain + ".zst"] {
        if ended {
          _ = try BatchReader(reading: path)
        } else {
          #expect(throws: BadBatch.self, "\(path)") { try BatchReader(reading: path) }
        }
      }
    }
  }

  @Test func nonASCIINamesAreAccepted() throws {
    let folder = try scratch.directory("größe")
    try Data(try BatchTests.jpeg).write(to: URL(fileURLWithPath: folder + "/1767859512340.jpg"))
    let path = scratch.path("s.tar")
    try Tool.output("tar", ["--format=pax", "-cf", path, "-C", scratch.path, "größe"])
    #expect(try BatchReader(reading: path).batch.frames.map(\.source) == ["1767859512340.jpg"])
  }

  @Test func listOfRefusedEntriesIsBounded() throws {
    let folder = try scratch.directory("many")
    try Data(try BatchTests.jpeg).write(to: URL(fileURLWithPath: folder + "/1767859512340.jpg"))
    for number in 0..<30 { try scratch.file("many/" + String(repeating: "n", count: 200) + "\(number)", [1]) }
    var limits = Limits()
    limits.refusals = 10
    limits.nameBytes = 100
    let refused = try BatchReader(reading: folder, limits: limits).batch.refused
    #expect(refused.count == 11)
    #expect(refused.last?.reason == "and 20 more")
    #expect(refused.allSatisfy { $0.source.utf8.count <= 100 })
  }

  @Test func fileOfAnotherFormatIsRefusedAsArchive() throws {
    let image = try BatchTests.jpeg
    for (name, bytes) in [
      ("empty", []), ("text", Array("hello".utf8)), ("image", image),
      ("zeros", [UInt8](repeating: 0, count: 4_096)),
    ] as [(String, [UInt8])] {
      let path = try scratch.file(name, bytes)
      #expect(throws: BadBatch.self, "\(name)") { try BatchReader(reading: path) }
    }
  }

  @Test func archiveAboveTheUnpackedLimitIsRefusedEarly() throws {
    let zeros = try scratch.directory("zeros")
    for number in 0..<8 {
      try scratch.file("zeros/176785951234\(number).jpg", [UInt8](repeating: 0, count: 1 << 20))
    }
    let path = scratch.path("bomb.tar.gz")
    try Tool.output("tar", ["-caf", path, "-C", zeros, "."])
    var limits = Limits()
    limits.unpackedBytes = 4 << 20
    #expect(throws: BadBatch.self) { try BatchReader(reading: path, limits: limits) }
    limits.unpackedBytes = 10 << 20
    limits.entries = 3
    #expect(throws: BadBatch.self) { try BatchReader(reading: path, limits: limits) }
  }

  /// Equal frames compress well, so the ratio limit applies only to large archives.
  @Test(arguments: ["tar", "tar.gz", "tar.zst", "frames", "frames.gz", "frames.zst"])
  func compressionRatioIsLimitedOnlyForLargeArchives(suffix: String) throws {
    let parts = suffix.split(separator: ".")
    let path = scratch.path("s." + parts[0])
    if parts[0] == "tar" {
      let folder = try scratch.directory("equal")
      for number in 0..<400 { try scratch.file("equal/\(1_767_859_512_340 + number).jpg", BatchTests.jpeg) }
      try Tool.output("tar", ["-cf", path, "-C", folder, "."])
    } else {
      let record = [UInt8](repeating: 7, count: 8) + [0, 4, 0, 0] + [UInt8](repeating: 0, count: 1_024)
      try scratch.file("s.frames", Array(repeatElement(record, count: 4_000).joined()))
    }
    if parts.last == "gz" { try Tool.output("gzip", ["-k", path]) }
    if parts.last == "zst" { try Tool.output("zstd", ["-q", path]) }
    func open(_ limits: Limits) throws {
      let file = Glibc.open(scratch.path("s." + suffix), O_RDONLY)
      defer { close(file) }
      _ = try ArchiveContents(reading: file, name: "s", limits: limits)
    }
    var limits = Limits()
    try open(limits)
    (limits.ratio, limits.bytesOfAnyRatio) = (2, 1 << 20)
    if parts.count == 1 {
      try open(limits)
    } else {
      #expect {
        try open(limits)
      } throws: {
        ($0 as? BadBatch)?.cause == "unpacks to more than 2 times its size"
      }
    }
  }
}
