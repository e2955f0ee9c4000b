import Foundation
import TestSupport
import Testing

/// `encode` into a session that is far away in time: a second try, most times.
@Suite struct AppendTests {
  private let scratch: ScratchDirectory
  private static let start: Int64 = 1_767_859_512_000

  init() throws { scratch = try ScratchDirectory() }

  /// Makes a folder of three pictures.
  private func folder(_ name: String, from startMs: Int64) throws {
    _ = try scratch.directory(name)
    for number in 0..<3 {
      try scratch.file(
        "\(name)/\(startMs + 1_000 * Int64(number)).jpg", Fixture("exact-1fps").bytes("000\(number).jpg"))
    }
  }

  private func encode(_ words: String..., session: String = "s") throws -> Tool.Result {
    try Tool.run(
      EncoderWorker.path, ["encode"] + words + ["-o", "out", "--session", session], in: scratch.url)
  }

  private func segments() throws -> Int {
    try names(in: scratch.path("out/s")).filter { $0.hasSuffix(".mp4") }.count
  }

  @Test(arguments: [3_600_000 + 3_001, -3_600_000 - 3_001] as [Int64])
  func batchMoreThanAnHourAwayAsksForAppend(distanceMs: Int64) throws {
    try folder("first", from: Self.start)
    try folder("second", from: Self.start + distanceMs)
    #expect(try encode("first").status == 0)
    let refused = try encode("second", "--json")
    #expect(try refused.status == 65 && segments() == 1)
    let said = refused.text + refused.errors
    for word in ["1 h away", "--append", "another --session", "encoder-worker delete s --output out"] {
      #expect(said.contains(word), "\(said)")
    }
    // The same batch again changes nothing, and needs no leave.
    let again = try encode("first")
    #expect(again.status == 0 && again.text.contains("published before"))
    let other = try encode("second", session: "t")
    #expect(other.status == 0)
    let added = try encode("second", "--append")
    #expect(try added.status == 0 && segments() == 2, "\(added.errors)")
    // Batches beside the pictures are not what is at fault.
    try folder("late/first", from: Self.start)
    try folder("late", from: Self.start + 3 * distanceMs)
    let late = try encode("late/\(Self.start + 3 * distanceMs).jpg")
    #expect(late.status == 65 && late.errors.contains("give --append"), "\(late.errors)")
    // Between the two.
    try folder("third", from: Self.start + distanceMs / 2)
    #expect(try encode("third").status == 0)
  }

  @Test func batchesOfOneCallMakeOneSession() throws {
    try folder("first", from: Self.start)
    try folder("second", from: Self.start + 86_000_000)
    let result = try encode("first", "second")
    #expect(try result.status == 0 && segments() == 2, "\(result.errors)")
  }

  @Test func batchWithinAnHourNeedsNoLeave() throws {
    try folder("first", from: Self.start)
    try folder("second", from: Self.start + 3_600_000)
    #expect(try encode("first").status == 0)
    #expect(try encode("second").status == 0)
  }

  /// Engines encode the batches of a session in any order.
  @Test func batchesOfADirectoryOrAListNeedNoLeave() throws {
    for (number, hours) in [0, 7, 3].enumerated() {
      try folder("batches/\(number)", from: Self.start + Int64(hours) * 3_600_000)
    }
    #expect(try encode("batches/0").status == 0)
    for shard in ["0/2", "1/2"] {
      let result = try encode("--batches", "batches", "--shard", shard)
      #expect(result.status == 0, "\(result.errors)")
    }
    #expect(try segments() == 3)
    try folder("late", from: Self.start + 20 * 3_600_000)
    try scratch.file("list", Array("late\n".utf8))
    #expect(try encode("--files-from", "list").status == 0)
  }

  @Test func batchesOfASpoolNeedNoLeave() throws {
    for (name, hours) in [("s@1", 0), ("s@2", 9)] {
      try folder(name, from: Self.start + Int64(hours) * 3_600_000)
      let enqueued = try Tool.run(
        EncoderWorker.path, ["enqueue", "--spool", "spool", "--session", "s", name], in: scratch.url)
      #expect(enqueued.status == 0, "\(enqueued.errors)")
      let drained = try Tool.run(EncoderWorker.path, ["run", "--spool", "spool", "--drain"], in: scratch.url)
      #expect(drained.status == 0, "\(drained.errors)")
    }
    #expect(try names(in: scratch.path("spool/output/s")).filter { $0.hasSuffix(".mp4") }.count == 2)
    #expect(try names(in: scratch.path("spool/quarantine")).isEmpty)
  }
}
