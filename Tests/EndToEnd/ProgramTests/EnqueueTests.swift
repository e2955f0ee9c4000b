import Foundation
import TestSupport
import Testing

/// `enqueue` refuses what a worker would quarantine, for the reason that `encode --dry-run` gives.
@Suite struct EnqueueTests {
  private static let startMs: Int64 = 1_767_859_512_340

  private let scratch: ScratchDirectory
  private let spool: String

  init() throws {
    scratch = try ScratchDirectory()
    spool = scratch.path("spool")
  }

  private static let frames: [String: [String]] = [
    "numbered": ["0001.jpg", "0002.jpg"], "dated": ["Shot_2026-01-08 at 08.05.12.png"], "unnamed": ["abc.jpg"],
    "seconds": ["1767859512.jpg"], "zoned": ["2026-01-08T08-05-12Z.jpg", "2026-01-08T08-05-13Z.jpg"],
    "mixed": ["1767859512340.jpg", "abc.jpg"], "plain": ["1767859512340.jpg", "1767859513340.jpg"],
  ]

  /// Makes a directory of frames.
  private func directory(_ name: String, _ frames: [String], batch: String? = nil, image: [UInt8]? = nil) throws {
    let image = try image ?? Fixture("exact-1fps").bytes("0000.jpg")
    _ = try scratch.directory(name)
    for frame in frames { try scratch.file(name + "/" + frame, image) }
    if let batch { try scratch.file(name + "/batch.json", Array(batch.utf8)) }
  }

  private func run(_ words: String..., environment: [String: String] = [:]) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, words, in: scratch.url, environment: environment)
  }

  private func waiting() throws -> [String] {
    FileManager.default.fileExists(atPath: spool) ? try names(in: spool + "/incoming") + names(in: spool + "/tmp") : []
  }

  @Test(arguments: [
    ("numbered", "--start T --fps R"), ("dated", "--name-time 'Shot_%Y-%m-%d at %H.%M.%S'"),
    ("unnamed", "--times mtime"), ("seconds", "give milliseconds: 1767859512000"),
  ])
  func namesWithoutACaptureAreRefusedWithTheReasonOfInspect(name: String, advice: String) throws {
    try directory(name, Self.frames[name] ?? [])
    let (inspected, enqueued) = (try run("encode", "--dry-run", name), try run("enqueue", "--spool", "spool", name))
    #expect(inspected.status == 65 && enqueued.status == 65)
    #expect(inspected.text.contains(advice) && enqueued.errors.contains(advice), "\(enqueued.errors)")
    let files = (Self.frames[name] ?? []).map { name + "/" + $0 }
    let named = try Tool.run(EncoderWorker.path, ["enqueue", "--spool", "spool"] + files, in: scratch.url)
    #expect(named.status == 65 && named.errors.contains(advice), "\(named.errors)")
    #expect(named.errors.contains("\(files[0]): the name is no capture in unix milliseconds"), "\(named.errors)")
    #expect(try waiting() == [])
  }

  @Test func picturesThatNoWorkerDecodesAreRefusedWithTheRemedy() throws {
    // The start of a PNG of 9000×16 pixels, and that of a JPEG 2000.
    let wide: [UInt8] =
      [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
      + [0, 0, 0x23, 0x28, 0, 0, 0, 16, 8, 2, 0, 0, 0]
    let cases = [
      ("wide", wide, "--limit side=9000"),
      ("wavelets", [0, 0, 0, 12, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A], "JPEG 2000"),
    ]
    for (name, image, remedy) in cases {
      try directory(name, ["1767859512340.png"], image: image)
      let refused = try run("enqueue", "--spool", "spool", name)
      #expect(refused.status == 65 && refused.errors.contains(remedy), "\(refused.errors)")
    }
    #expect(try waiting() == [])
    #expect(try run("enqueue", "--spool", "spool", "wide", "--limit", "side=9000").status == 0)
  }

  @Test(arguments: [
    (#"{"version":1,"#, "not JSON"), (#"{"version":1,"session":"a b"}"#, "the session id \"a b\" cannot be used"),
    (#"{"version":2}"#, "version 2 is not known"), (#"{"version":1,"frames":[]}"#, "no frame that can be used"),
    (#"{"version":1,"intervalMs":0}"#, "intervalMs 0 is not between"),
    (#"{"version":1,"frames":[{"file":"gone.jpg","timeMs":1767859512340}]}"#, "none of its 1 frames can be decoded"),
  ])
  func unusableDescriptionIsRefused(batch: String, cause: String) throws {
    try directory("walk", Self.frames["plain"] ?? [], batch: batch)
    #expect(try run("encode", "--dry-run", "walk").text.contains(cause))
    let result = try run("enqueue", "--spool", "spool", "walk")
    #expect(result.status == 65 && result.errors.contains(cause), "\(result.errors)")
    #expect(try waiting() == [])
  }

  @Test func directoryWhoseNameIsNoSessionIsRefused() throws {
    try directory("two words", Self.frames["plain"] ?? [], batch: #"{"version":1}"#)
    let result = try run("enqueue", "--spool", "spool", "two words")
    #expect(result.status == 65 && result.errors.contains("the session id \"two words\" cannot be used"))
    #expect(try waiting() == [])
  }

  @Test func filesThatAreNoImagesAreRefused() throws {
    try directory("pages", Self.frames["plain"] ?? [], image: Array("<html>".utf8))
    for words in [["pages"], ["pages/1767859512340.jpg"], ["pages", "--final"]] {
      let result = try Tool.run(EncoderWorker.path, ["enqueue", "--spool", "spool"] + words, in: scratch.url)
      #expect(result.status == 65 && result.errors.contains("frames can be decoded"), "\(result.errors)")
    }
    #expect(try waiting() == [])
  }

  @Test func moreFramesThanTheLimitBecomeSeveralBatches() throws {
    try directory("yard", (0..<4).map { "\(Self.startMs + Int64($0) * 1_000).jpg" })
    let environment = ["ENCODER_WORKER_LIMIT": "frames=3"]
    let result = try run("enqueue", "--spool", "spool", "--session", "yard", "yard", environment: environment)
    #expect(result.status == 0 && result.errors.contains("2 batches are in spool/incoming"), "\(result.errors)")
    #expect(result.text == "yard@1767859512340\nyard@1767859515340\n")
    #expect(try waiting() == ["yard@1767859512340", "yard@1767859515340"])
  }

  @Test func describedFramesBeyondTheLimitNeedTheLimitThatTheMessageNames() throws {
    let frames = (0..<4).map { "\(Self.startMs + Int64($0) * 1_000).jpg" }
    try directory("yard", frames, batch: #"{"version":1,"session":"yard"}"#)
    let environment = ["ENCODER_WORKER_LIMIT": "frames=3"]
    let result = try run("enqueue", "--spool", "spool", "yard", environment: environment)
    #expect(result.status == 65 && result.errors.contains("4 frames, more than the limit of 3"), "\(result.errors)")
    #expect(result.errors.contains("--limit frames=4, or split the batch"), "\(result.errors)")
    #expect(try waiting() == [])
    #expect(
      try run("enqueue", "--spool", "spool", "yard", "--limit", "frames=4", environment: environment).status == 0)
  }

  @Test func batchThatIsEnqueuedIsPublished() throws {
    for name in ["zoned", "mixed", "plain"] {
      try directory(name, Self.frames[name] ?? [])
      #expect(try run("enqueue", "--spool", "spool", "--session", name, name).status == 0)
    }
    #expect(try waiting().sorted() == ["mixed@1767859512340", "plain@1767859512340", "zoned@1767859512000"])
    let result = try run("--spool", "spool", "--drain")
    #expect(
      result.status == 0 && result.errors.contains("3 batches published, 3 segments, 5 frames"), "\(result.errors)")
  }
}
