import Foundation
import TestSupport
import Testing

/// Batches that try to read or write outside the spool, or to exhaust resources (`Tests/torture/attacks.py`). The tests
/// check the worker's exit status, its peak memory and the files outside the spool.
@Suite(.serialized) struct HostileInputTests {
  private let spool: TestSpool
  private let outside: String
  private static let maximumBytes = 512 << 20

  init() throws {
    spool = try TestSpool()
    outside = try spool.scratch.directory("outside")
    try spool.scratch.file("outside/victim.jpg", Fixture("exact-1fps").bytes("0001.jpg"))
  }

  private func attack(_ kind: String) throws {
    let script = Fixture.root.appendingPathComponent("Tests/torture/attacks.py").path
    try Tool.output(Tool.python, [script, kind, spool.path + "/tmp/attack", outside + "/victim.jpg"])
    try FileManager.default.moveItem(atPath: spool.path + "/tmp/attack", toPath: spool.path + "/incoming/attack")
  }

  /// Runs a worker until the spool is empty. Expects that it changes nothing outside.
  ///
  /// - Returns: the causes in quarantine, by batch.
  private func drainAll(within maximumBytes: Int = maximumBytes) throws -> [String: String] {
    let before = try snapshot(of: outside)
    let run = try EncoderWorker.measure(["--spool", spool.path, "--drain"])
    let names = try spool.names("quarantine")
    #expect(run.status == (names.isEmpty ? 0 : 65), "\(run.status): \(run.errors)")
    #expect(run.peakBytes <= maximumBytes)
    #expect(try snapshot(of: outside) == before)
    #expect(try TestSupport.names(in: spool.scratch.path) == ["outside", "spool"])
    #expect(try spool.isAtRest)
    return try spool.causes()
  }

  /// Runs a worker on the one batch of ``attack(_:)``.
  ///
  /// - Returns: the cause in quarantine; nil if the worker published the batch.
  private func drain() throws -> String? { try drainAll()["attack"] }

  /// Runs a worker on an attack of which one frame is good: the batch is kept, because most of it is lost. Then accepts it.
  private func drainAccepted() throws {
    #expect(try drain()?.contains("pictures would not be shown") == true)
    let retry = try EncoderWorker.run("quarantine", "retry", "--spool", spool.path, "--accept", "attack")
    #expect(retry.status == 0, "\(retry.errors)")
    #expect(try drain() == nil)
  }

  /// The refused frames in the manifest.
  private func refused(_ session: String) throws -> Set<String> {
    Set(try PublishedSession(spool.output + "/" + session).manifests[0].refused.map(\.reason))
  }

  /// Archives that are compressed 2 to 25 times: members that unpack to nothing, huge windows, archives in archives.
  @Test func nestedCompressionIsQuarantinedAtLittleCost() throws {
    let script = Fixture.root.appendingPathComponent("Tests/torture/nested.py").path
    let number = Extent.of(40, full: 200)
    try Tool.output(Tool.python, [script, "\(number)", spool.path + "/incoming"])
    try spool.add("exact-1fps")
    let causes = try drainAll(within: 200 << 20)
    #expect(causes.count == number)
    #expect(causes.keys.allSatisfy { $0.hasPrefix("nested") })
    #expect(causes.values.contains("compressed twice"))
    #expect(try PublishedSession(spool.output + "/exact-1fps").captured.count == 12)
  }

  @Test func doubleCompressionIsNamed() throws {
    try attack("stream-twice")
    #expect(try drain() == "compressed twice")
  }

  /// One layer of compression, of members that hold nothing.
  @Test func emptyGzipMembersAreRefusedBeforeTheirEnd() throws {
    // A gzip member of no bytes (RFC 1952), repeated.
    let member: [UInt8] = [31, 139, 8, 0, 0, 0, 0, 0, 2, 255, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    try spool.add(file: "empty.tar.gz", Array(repeatElement(member, count: 200_000).joined()))
    #expect(try drainAll()["empty.tar.gz"] == "its compressed parts unpack to next to nothing")
  }

  @Test func tarOfPathsLinksAndDevicesYieldsItsOneFrame() throws {
    try attack("tar-of-everything")
    try drainAccepted()
    #expect(
      try refused("attack") == [
        "a name with ..", "an absolute name", "a link", "not a regular file",
        "the name is not <unix ms>.jpg, .jpeg, .png or .webp",
      ])
  }

  @Test func zipOfPathsLinksAndDevicesYieldsItsOneFrame() throws {
    try attack("zip-of-everything")
    try drainAccepted()
    #expect(
      try refused("attack") == [
        "a name with ..", "an absolute name", "a link", "not a regular file",
        "the name is not <unix ms>.jpg, .jpeg, .png or .webp",
      ])
  }

  @Test func zipEntriesThatShareTheirBytesAreRefused() throws {
    try attack("zip-one-place")
    #expect(try drain()?.contains("reaches into the next entry") == true)
  }

  @Test func zipOf65536EntriesIsRefusedAtTheLimit() throws {
    try attack("zip-65536")
    #expect(try drain() == "more than 20000 entries")
  }

  @Test func directoryOfLinksFIFOsAndSocketsYieldsItsOneFrame() throws {
    try attack("directory-of-everything")
    try drainAccepted()
    #expect(try refused("attack") == ["a symbolic link", "not a regular file"])
  }

  @Test func aPictureOfSixtyThousandPixelsASideIsRefused() throws {
    try attack("huge-png")
    #expect(try drain() == nil)
    #expect(try refused("attack").first?.contains("60000×60000 pixels, more than the limit") == true)
  }

  @Test(arguments: [
    "stream-gzip", "stream-zstd", "tar-zeros-gzip", "tar-zeros-zstd", "tar-skipped-zeros", "tar-sparse",
    "json-tar-zstd", "zip-zeros",
  ])
  func archiveBombIsRefusedBeforeItIsUnpacked(kind: String) throws {
    try attack(kind)
    #expect(try drain() == "unpacks to more than 200 times its size")
  }

  /// Only a file system in memory holds files of this size.
  @Test(.enabled(if: access("/dev/shm", W_OK) == 0, "/dev/shm is missing or read-only"))
  func aFileOfFourExbibytesIsRefused() throws {
    let path = "/dev/shm/segment-encoder-\(UUID().uuidString)"
    let file = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
    defer { unlink(path) }
    try #require(file >= 0 && pwrite(file, "x", 1, 0) == 1 && ftruncate(file, 1 << 62) == 0, "\(path): \(errno)")
    close(file)
    let result = try EncoderWorker.run("encode", path, "--output", spool.output, "--session", "attack")
    #expect(result.status == 65)
    #expect(result.errors.contains("unpacks to more than the limit"), "\(result.errors)")
  }

  @Test func gibibyteOfZerosIsRefusedAsAnArchiveWithoutEntries() throws {
    try attack("zeros")
    #expect(try drain() == "nothing in it")
  }

  @Test func aMillionEntriesAreRefusedAtTheLimit() throws {
    try attack("million-entries")
    #expect(try drain() == "more than 20000 entries")
  }

  @Test func aDescriptionOfAGibibyteIsRefused() throws {
    try attack("json-directory")
    #expect(try drain()?.contains("1073741824 bytes, more than the limit of") == true)
    try FileManager.default.removeItem(atPath: spool.path + "/quarantine")
    try attack("json-tar-gzip")
    #expect(try drain() == "unpacks to more than the limit of 536870912 bytes")
  }

  @Test func unsafeSessionNameIsRefused() throws {
    let sessions = ["..", ".", "a/b", "../up", "/tmp/up", #"a\u0000b"#, String(repeating: "x", count: 129)]
    for (index, session) in sessions.enumerated() {
      try spool.add("single-frame", as: "attack-\(index)")
      let json = #"{"version":1,"session":"\#(session)"}"#
      try Data(json.utf8).write(to: URL(fileURLWithPath: spool.path + "/incoming/attack-\(index)/batch.json"))
    }
    let causes = try drainAll()
    for (index, session) in sessions.enumerated() {
      #expect(causes["attack-\(index)"]?.contains("cannot be used") == true, "\(session)")
    }
    #expect(try spool.names("output").filter { $0 != ".staging" }.isEmpty)
  }
}
