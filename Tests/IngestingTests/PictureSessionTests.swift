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
      file, at: startMs + 1_000 * number, kind: "jpg", digest: SHA256.hex(of: bytes), bytes: bytes.count)
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
    let names = try session.cut(isClosing: true)
    #expect(names.count == 1 && session.isEmpty && session.waitingBytes == 0)
    #expect(try frames(names[0]) == [0, 1, 2].map { startMs + 1_000 * $0 })
    #expect(try add(1, to: session) == .known && add(1, "other", to: session) == .conflict)
    #expect(try TestSupport.names(in: path) == [".taken"])
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
      _ = try session.cut(isClosing: true)
      _ = try add(2, to: session)
    }
    let session = try open()
    #expect(try !session.isEmpty && add(0, to: session) == .known && add(2, "other", to: session) == .conflict)
    #expect(try frames(session.cut(isClosing: true)[0]) == [startMs + 2_000])
  }

  /// A crash before the pictures are moved, after one of them, after all, and after the description.
  @Test(arguments: 0...3) func batchThatWasBegunIsFinishedOrTakenBack(step: Int) throws {
    do {
      let session = try open()
      for number in 0...1 { _ = try add(Int64(number), to: session) }
    }
    let lines = [0, 1].map { "\(startMs + 1_000 * Int64($0)) \(SHA256.hex(of: Array("picture \($0)".utf8)))\n" }
      .joined()
    let taken = "\(lines)= \(startMs + 1_000) \(startMs + 2_000) 1000\n"
    try Data(taken.utf8).write(to: URL(fileURLWithPath: path + "/.taken"))
    let draft = path + "/.film@\(startMs).0000000000000"
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
    for number in [0, 1].prefix(step) {
      let name = "\(startMs + 1_000 * Int64(number)).jpg"
      try FileManager.default.moveItem(atPath: path + "/" + name, toPath: draft + "/" + name)
    }
    if step == 3 {
      try Data(#"{"version":1,"session":"film"}"#.utf8).write(to: URL(fileURLWithPath: draft + "/batch.json"))
    }
    let session = try open()
    #expect(session.isEmpty == (step == 3))
    #expect(try add(0, to: session) == .known && add(1, "other", to: session) == .conflict)
    _ = try session.cut(isClosing: true)
    let names = try TestSupport.names(in: spool.incoming)
    #expect(try names.count == 1 && frames(names[0]) == [startMs, startMs + 1_000])
    #expect(try TestSupport.names(in: path) == [".taken"])
  }

  @Test func tornLineIsReplaced() throws {
    do {
      let session = try open()
      _ = try add(0, to: session)
      _ = try session.cut(isClosing: true)
    }
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path + "/.taken"))
    try file.seekToEnd()
    try file.write(contentsOf: Data("17678595".utf8))
    do {
      let session = try open()
      _ = try add(5, to: session)
      _ = try session.cut(isClosing: true)
    }
    let session = try open()
    #expect(try add(0, to: session) == .known && add(5, to: session) == .known)
  }

  @Test func memoryOfPicturesIsBounded() throws {
    let session = try open()
    for round in 0..<75 {
      for number in 0..<60 { _ = try add(Int64(60 * round + number), to: session) }
      _ = try session.cut(isClosing: true)
    }
    #expect(try DurableFile.size(of: path + "/.taken") < 1 << 20)
    #expect(try add(4_499, to: session) == .known)
    #expect(try add(0, to: session) == .taken)
  }

  @Test func directoryWithAPictureIsNotRemoved() throws {
    let session = try open()
    _ = try add(0, to: session)
    session.remove()
    #expect(DurableFile.exists(path + "/\(startMs).jpg"))
    _ = try session.cut(isClosing: true)
    session.remove()
    #expect(!DurableFile.exists(path))
  }
}
