import Foundation
import TestSupport
import Testing

/// `enqueue` splits a folder of more pictures than a batch takes, as `encode` does.
@Suite struct SpoolFolderTests {
  private let spool: TestSpool
  private let folder: NumberedFolder

  init() throws {
    spool = try TestSpool()
    folder = try NumberedFolder("yard", in: spool.scratch)
  }

  private func enqueue(_ options: String...) throws -> [String] {
    let result = try Tool.run(
      EncoderWorker.path,
      ["enqueue", "--spool", spool.path, "--session", "yard", "--limit", "frames=6", folder.path] + options)
    try #require(result.status == 0, "\(result.errors)")
    return result.text.split(separator: "\n").map(String.init)
  }

  private func encoded(_ options: String...) throws -> [String: Data] {
    let output = spool.scratch.path("encoded-\(UUID().uuidString)")
    let result = try Tool.run(
      EncoderWorker.path, ["encode", folder.path, "--output", output, "--limit", "frames=6"] + options)
    try #require(result.status == 0, "\(result.errors)")
    return try snapshot(of: output + "/yard").mapValues(\.bytes)
  }

  @Test func batchesOfAFolderAreThoseOfEncode() throws {
    try folder.add(at: (0..<20).map { $0 * 1_000 + $0 % 3 * 50 })
    let starts = [0, 6, 12, 18].map { (number: Int64) in
      let startMs: Int64 = NumberedFolder.startMs + number * 1_000 + number % 3 * 50
      return "yard@\(startMs)"
    }
    #expect(try enqueue() == starts)
    #expect(try spool.names("incoming") == starts)
    let result = try spool.drain("--jobs", "2")
    #expect(result.status == 0 && result.errors.contains("4 batches published"), "\(result.errors)")
    #expect(try snapshot(of: spool.output + "/yard").mapValues(\.bytes) == encoded())
    // Again, they are duplicates.
    let before = try snapshot(of: spool.output + "/yard")
    #expect(try enqueue() == starts)
    #expect(try spool.drain().status == 0 && spool.names("quarantine") == [])
    #expect(try snapshot(of: spool.output + "/yard") == before)
  }

  @Test func numberedPicturesAreSplitToo() throws {
    for number in 0..<14 { try folder.add(String(format: "shot_%03d.png", number), number) }
    let options = ["--start", "\(NumberedFolder.startMs)", "--fps", "2"]
    #expect(try enqueue(options[0], options[1], options[2], options[3]).count == 3)
    try #require(try spool.drain().status == 0)
    let whole = try encoded(options[0], options[1], options[2], options[3])
    #expect(try snapshot(of: spool.output + "/yard").mapValues(\.bytes) == whole)
  }

  @Test func folderThatHasGrownIsContinued() throws {
    var count = 0
    for more in [4, 1, 9, 4] {
      try folder.add(at: (count..<count + more).map { Int64($0) * 1_000 }, from: count)
      count += more
      _ = try enqueue()
      let result = try spool.drain("--jobs", "2")
      #expect(try result.status == 0 && spool.names("quarantine") == [], "\(result.errors)")
      let session = try PublishedSession(spool.output + "/yard")
      #expect(session.captured.map(\.timeMs) == (0..<count).map { NumberedFolder.startMs + Int64($0) * 1_000 })
      #expect(session.index.gaps == [])
    }
  }

  /// The mode of capture is the worker's, unless the names or an option tell it.
  @Test func partsLeaveTheCaptureModeToTheWorker() throws {
    try folder.add(at: (0..<8).map { $0 * 9_000 })
    _ = try enqueue()
    try #require(try spool.drain("--capture", "onChange").status == 0)
    #expect(try PublishedSession(spool.output + "/yard").index.gaps == [])
  }

  /// Files that a worker would refuse in the last batch are refused before the first batch is in the spool.
  @Test func otherFilesAreCountedFirst() throws {
    try folder.add(at: (0..<8).map { $0 * 1_000 })
    for number in 0..<12 { try spool.scratch.file("yard/note \(number).txt", [0x61]) }
    func refusal(_ options: String...) throws -> String {
      let result = try Tool.run(
        EncoderWorker.path, ["enqueue", "--spool", spool.path, "--session", "yard", folder.path] + options)
      #expect(try result.status == 65 && spool.names("incoming") == [])
      return result.errors
    }
    #expect(try refusal("--limit", "frames=6", "--limit", "entries=12").contains("15 files, more than the limit of 12"))
    let film = folder.path + "/film.mov"
    try #require(FileManager.default.createFile(atPath: film, contents: Data(count: 17 << 20)))
    #expect(try refusal("--limit", "frames=6").contains("\(film): 17825792 bytes, more than the limit of 16777216"))
  }

  @Test func workerRefusesALargeFolderWithTheCommandThatSplitsIt() throws {
    try folder.add(at: (0..<8).map { $0 * 1_000 })
    try FileManager.default.copyItem(atPath: folder.path, toPath: spool.path + "/incoming/yard")
    #expect(try spool.drain("--limit", "frames=6").status == 65)
    let reason = try spool.reason("yard")
    #expect(reason.cause == "8 frames, more than the limit of 6")
    #expect(reason.advice == "raise the limit with --limit frames=8, or send it with enqueue, which splits it")
  }
}
