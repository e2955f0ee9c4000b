import Batching
import FileSystem
import Foundation
import FrameBatches
import TestSupport
import Testing
import WorkQueues

@testable import Ingesting

/// The pictures of a session on the disk, and each state that a crash can leave.
@Suite struct PictureSessionTests {
  private let scratch: ScratchDirectory
  private let spool: Spool
  private let id = SessionID("film")!
  private let startMs: Int64 = 1_767_859_512_340

  init() throws {
    scratch = try ScratchDirectory()
    spool = try Spool(creating: scratch.path("spool"))
    try DurableFile.makeDirectories(spool.pictures)
  }

  private var path: String { spool.pictures + "/film" }

  private func open() throws -> PictureSession { try PictureSession(id, in: spool, PictureSession.Rules()) }

  private func add(_ number: Int64, _ text: String? = nil, to session: PictureSession) throws -> IntakeOutcome {
    let bytes = Array((text ?? "picture \(number)").utf8)
    let file = try scratch.file("draft", bytes)
    return try session.add(
      file, at: startMs + 1_000 * number, kind: "jpg", digest: SHA256.hex(of: bytes), bytes: bytes.count
    ).outcome
  }

  @Test func wrongClockOfADeviceIsCorrectedOnceAndStated() throws {
    let hourMs: Int64 = 3_600_000
    func add(_ number: Int64, aheadMs: Int64?, to session: PictureSession) throws -> String {
      let bytes = Array("picture \(number)".utf8)
      let added = try session.add(
        scratch.file("draft", bytes), at: startMs + 1_000 * number, aheadMs: aheadMs, kind: "jpg",
        digest: SHA256.hex(of: bytes), bytes: bytes.count)
      return "\(added.outcome) \(added.timeMs - startMs)"
    }
    do {
      let session = try open()
      // Half a minute is the time that a request takes, or a clock that is right enough.
      #expect(try add(0, aheadMs: 30_000, to: session) == "taken 0")
      #expect(try add(1, aheadMs: hourMs, to: session) == "taken \(1_000 + hourMs)")
    }
    // A repeated request is sent later.
    let session = try open()
    #expect(try add(1, aheadMs: hourMs + 40_000, to: session) == "known \(1_000 + hourMs)")
    #expect(try add(2, aheadMs: hourMs - 40_000, to: session) == "taken \(2_000 + hourMs)")
    #expect(try add(3 + hourMs / 1_000, aheadMs: 0, to: session) == "taken \(3_000 + hourMs)")
    let batches = try session.cut(.session("film")).map { try BatchReader(reading: spool.incoming + "/" + $0).batch }
    #expect(
      batches.map { $0.frames.map { $0.timeMs - startMs } } == [
        [0], [1_000 + hourMs, 2_000 + hourMs], [3_000 + hourMs],
      ])
    #expect(batches.map(\.clockOffsetMs) == [0, hourMs, 0])
    // A sender may state any time.
    #expect(throws: ProblemDetails.self) { try add(9, aheadMs: -(1 << 46), to: session) }
  }

  /// The captures of the only batch with this name.
  private func frames(_ batch: String) throws -> [Int64] {
    try BatchReader(reading: spool.incoming + "/" + batch).batch.frames.map(\.timeMs)
  }

  @Test func picturesBecomeABatchAndAreKnownAfterwards() throws {
    let session = try open()
    #expect(try add(1, to: session) == .taken && add(0, to: session) == .taken && add(2, to: session) == .taken)
    #expect(try add(1, to: session) == .known && add(1, "other", to: session) == .conflict)
    #expect(try session.cut().isEmpty)
    let names = try session.cut(.session("film"))
    #expect(names.count == 1 && session.isEmpty && session.waitingBytes == 0)
    #expect(try frames(names[0]) == [0, 1, 2].map { startMs + 1_000 * $0 })
    #expect(try add(1, to: session) == .known && add(1, "other", to: session) == .conflict)
    #expect(try TestSupport.names(in: path + "/held").isEmpty && TestSupport.names(in: path + "/drafts").isEmpty)
  }

  @Test func secondProcessDoesNotCollectTheSameSession() throws {
    let session = try open()
    #expect(throws: SessionInUse.self) { try open() }
    withExtendedLifetime(session) {}
  }

  @Test func picturesAndWhatBatchesHaveAreFoundAgain() throws {
    do {
      let session = try open()
      for number in 0...1 { _ = try add(Int64(number), to: session) }
      _ = try session.cut(.session("film"))
      _ = try add(2, to: session)
    }
    let session = try open()
    #expect(try !session.isEmpty && add(0, to: session) == .known && add(2, "other", to: session) == .conflict)
    #expect(try frames(session.cut(.session("film"))[0]) == [startMs + 2_000])
  }

  /// A crash while the draft is written, before the journal has it, before it is in `incoming/`, and before the journal knows that.
  @Test(arguments: 0...3) func batchThatWasBegunIsFinishedOrTakenBack(step: Int) throws {
    do {
      let session = try open()
      for number in 0...1 { _ = try add(Int64(number), to: session) }
      if step > 1 { _ = try session.cut(.session("film")) }
    }
    if step < 2 {
      try DurableFile.makeDirectories(path + "/drafts/film@\(startMs).0000000000000")
      let draft = path + "/drafts/film@\(startMs).0000000000000"
      let names = try TestSupport.names(in: path + "/held")
      try FileManager.default.copyItem(atPath: path + "/held/" + names[0], toPath: draft + "/\(startMs).jpg")
      if step == 1 { try Data("{}".utf8).write(to: URL(fileURLWithPath: draft + "/batch.json")) }
    } else {
      // The last line says that the batch is done.
      let lines = try String(contentsOfFile: path + "/journal", encoding: .utf8).split(separator: "\n")
      try Data((lines.dropLast().joined(separator: "\n") + "\n").utf8)
        .write(to: URL(fileURLWithPath: path + "/journal"))
      let batch = try TestSupport.names(in: spool.incoming)[0]
      if step == 2 {
        try FileManager.default.moveItem(atPath: spool.incoming + "/" + batch, toPath: path + "/drafts/" + batch)
      }
    }
    let session = try open()
    #expect(session.isEmpty == (step >= 2))
    #expect(try add(0, to: session) == .known && add(1, "other", to: session) == .conflict)
    _ = try session.cut(.session("film"))
    let names = try TestSupport.names(in: spool.incoming)
    #expect(try names.count == 1 && frames(names[0]) == [startMs, startMs + 1_000])
    #expect(try TestSupport.names(in: path + "/held").isEmpty && TestSupport.names(in: path + "/drafts").isEmpty)
  }

  /// A worker of a version before the batcher has left them.
  @Test func picturesOfAnEarlierVersionAreTakenOver() throws {
    try DurableFile.makeDirectories(path + "/.film@1.abc")
    try DurableFile.makeDirectories(path + "/.film@2.abc")
    try scratch.file("spool/ingest/film/\(startMs).jpg", Array("picture 0".utf8))
    try scratch.file("spool/ingest/film/.film@1.abc/\(startMs + 1_000).jpg", Array("picture 1".utf8))
    try scratch.file("spool/ingest/film/.film@2.abc/\(startMs - 9_000).jpg", Array("before".utf8))
    try scratch.file(
      "spool/ingest/film/.film@2.abc/batch.json", Array(#"{"version":1,"session":"film","intervalMs":1000}"#.utf8))
    try scratch.file("spool/ingest/film/.taken", Array("x\n".utf8))
    let session = try open()
    #expect(try TestSupport.names(in: spool.incoming) == ["film@2.abc"])
    #expect(try add(0, to: session) == .known && add(1, to: session) == .known)
    #expect(try frames(session.cut(.session("film"))[0]) == [startMs, startMs + 1_000])
    #expect(try TestSupport.names(in: path) == ["drafts", "held", "journal"])
  }

  /// An `end` before the first start of the new version.
  @Test func endTakesOverPicturesOfAnEarlierVersion() throws {
    try DurableFile.makeDirectories(path + "/.film@1.abc")
    try scratch.file("spool/ingest/film/\(startMs).jpg", Array("picture 0".utf8))
    try scratch.file("spool/ingest/film/.film@1.abc/\(startMs + 1_000).jpg", Array("picture 1".utf8))
    #expect(try !SessionClosing(spool).request(id))
    let names = try TestSupport.names(in: spool.incoming)
    #expect(try names.count == 1 && frames(names[0]) == [startMs, startMs + 1_000])
  }

  @Test func memoryOfPicturesIsBounded() throws {
    let session = try open()
    for round in 0..<75 {
      for number in 0..<60 { _ = try add(Int64(60 * round + number), to: session) }
      _ = try session.cut(.session("film"))
    }
    #expect(try DurableFile.size(of: path + "/journal") < 2 << 20)
    #expect(try add(4_499, to: session) == .known)
    #expect(try add(0, to: session) == .taken)
  }

  @Test func directoryWithAPictureIsNotRemoved() throws {
    let session = try open()
    _ = try add(0, to: session)
    try session.remove()
    #expect(try TestSupport.names(in: path + "/held").count == 1)
    _ = try session.cut(.session("film"))
    try session.remove()
    #expect(!DurableFile.exists(path))
  }
}
