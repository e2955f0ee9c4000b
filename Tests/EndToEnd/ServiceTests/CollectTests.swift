import Foundation
import TestSupport
import Testing

@testable import FileSystem

/// `collect` puts each picture into exactly one batch: after kills at random times, kills and failures at each call, a
/// full disk and clock jumps.
@Suite struct CollectTests {
  private let scratch: ScratchDirectory
  private let folder: String
  private let spool: String

  init() throws {
    scratch = try ScratchDirectory()
    folder = try scratch.directory("shots")
    spool = scratch.path("spool")
  }

  private static func image(_ text: String) -> [UInt8] {
    [0xFF, 0xD8, 0xFF, 0xE0] + Array("\(text) \(String(repeating: ".", count: text.utf8.count % 97))".utf8)
      + [0xFF, 0xD9]
  }

  /// Writes a picture in one of three ways: 0 directly, 1 under another name that is then renamed, 2 in two steps.
  private static func write(_ bytes: [UInt8], to path: String, way: Int, modified: Date? = nil) throws {
    let target = way == 1 ? path + ".part" : path
    let file = fopen(target, "w")
    guard let file else { throw Tool.Failure("open \(target)") }
    let half = way == 2 ? bytes.count / 2 : 0
    fwrite(bytes, 1, half, file)
    fclose(file)
    if way == 2 { usleep(500) }
    guard let file = fopen(target, "a") else { throw Tool.Failure("open \(target)") }
    fwrite(Array(bytes[half...]), 1, bytes.count - half, file)
    fclose(file)
    if let modified { try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: target) }
    if way == 1 { rename(target, path) }
  }

  /// The members of `batch.json`.
  private struct Description: Decodable {
    struct Frame: Decodable {
      let file: String
      let timeMs: Int64
    }

    let frames: [Frame]
  }

  private func pictures(in place: String) throws -> Int {
    guard FileManager.default.fileExists(atPath: place) else { return 0 }
    return try names(in: place).reduce(0) { try $0 + names(in: place + "/" + $1).count - 1 }
  }

  /// Returns the number of copies of each picture in the batches, by digest. Expects that each batch lists its files in
  /// time order.
  private func collected(in place: String? = nil) throws -> [String: Int] {
    var digests: [String: Int] = [:]
    let directory = place ?? spool + "/incoming"
    for name in try names(in: directory) {
      let batch = directory + "/" + name
      let text = try Data(contentsOf: URL(fileURLWithPath: batch + "/batch.json"))
      let frames = try JSONDecoder().decode(Description.self, from: text).frames
      let listed = frames.map(\.file)
      #expect(listed.sorted() == (try names(in: batch)).filter { $0 != "batch.json" })
      let times = frames.map(\.timeMs)
      #expect(times == times.sorted())
      for file in listed {
        digests[SHA256.hex(of: Array(try Data(contentsOf: URL(fileURLWithPath: batch + "/" + file)))), default: 0] += 1
      }
    }
    return digests
  }

  private func expectEachOnce(_ written: Set<String>, keeps: Bool = false, in place: String? = nil) throws {
    let found = try collected(in: place)
    let (lost, doubled) = (written.subtracting(found.keys), found.filter { $0.value > 1 })
    #expect(lost.isEmpty, "lost: \(lost.count) of \(written.count)")
    #expect(doubled.isEmpty, "doubled: \(doubled.count) of \(written.count)")
    #expect(found.count == written.count)
    #expect(try names(in: folder).count == (keeps ? written.count : 0))
    for home in try names(in: spool + "/collect") {
      for part in ["held", "drafts"] { #expect(try names(in: spool + "/collect/\(home)/" + part).isEmpty) }
    }
  }

  /// Runs `collect` until it has collected the folder, also the newest picture, then stops it.
  private func finish(_ options: String...) throws {
    if try isCollected(keeps: options.contains("--keep")) { return }
    let collector = try RunningWorker(["collect", folder, "--spool", spool, "--end-after-pause", "1"] + options)
    try waitUntil("the folder is collected") { try isCollected(keeps: options.contains("--keep")) }
    collector.signal(SIGTERM)
    #expect(try collector.wait() == 0)
  }

  /// Whether the folder has no picture that is in no batch.
  private func isCollected(keeps: Bool) throws -> Bool {
    let left = try names(in: folder).count
    return try left == 0 || keeps && pictures(in: spool + "/incoming") + pictures(in: scratch.path("taken")) >= left
  }

  @Test(arguments: [false, true]) func noPictureIsLostOrDoubledByKills(keeps: Bool) throws {
    let count = Extent.of(1_000, full: 10_000)
    let startMs: Int64 = 1_767_859_512_000
    let options = keeps ? ["--keep"] : []
    let folder = folder
    let written = Set((0..<count).map { SHA256.hex(of: Self.image("picture \($0)")) })
    let producer = Thread {
      for index in 0..<count {
        try? Self.write(
          Self.image("picture \(index)"), to: folder + "/\(startMs + Int64(index) * 200).jpg", way: index % 3)
        if index % 20 == 0 { usleep(100_000) }
      }
    }
    // The test moves batches away at any time, as a worker does.
    let taken = try scratch.directory("taken")
    producer.start()
    var random = Random(seed: keeps ? 2 : 1)
    var kills = 0
    while kills < 20 || !producer.isFinished {
      kills += 1
      let collector = try RunningWorker(
        ["collect", folder, "--spool", spool, "--batch-every", "1", "--end-after-pause", "600"] + options)
      usleep(UInt32(random.int(50_000...600_000)))
      collector.signal(SIGKILL)
      _ = try collector.wait()
      if keeps, FileManager.default.fileExists(atPath: spool + "/incoming") {
        for name in try names(in: spool + "/incoming") { rename(spool + "/incoming/" + name, taken + "/" + name) }
      }
    }
    let last = try RunningWorker(
      ["collect", folder, "--spool", spool, "--batch-every", "1", "--end-after-pause", "600"] + options)
    // `collect` holds the newest picture back.
    for _ in 0..<1_200 {
      if try pictures(in: spool + "/incoming") + pictures(in: taken) >= count - 1 { break }
      usleep(100_000)
    }
    last.signal(SIGTERM)
    #expect(try last.wait() == 0)
    try keeps ? finish("--keep") : finish()
    for name in try names(in: spool + "/incoming") where keeps {
      rename(spool + "/incoming/" + name, taken + "/" + name)
    }
    try expectEachOnce(written, keeps: keeps, in: keeps ? taken : nil)
  }

  @Test func jumpingClockLosesNoPicture() throws {
    var random = Random(seed: 3)
    let written = Set((0..<300).map { SHA256.hex(of: Self.image("jump \($0)")) })
    let collector = try RunningWorker(
      ["collect", folder, "--spool", spool, "--batch-every", "1", "--end-after-pause", "600", "--times", "mtime"])
    for index in 0..<300 {
      let jumpS = index / 30 % 2 == 0 ? 0 : random.int(-200_000...200_000)
      let modified = Date(timeIntervalSince1970: 1_767_859_512 + Double(index) * 0.2 + Double(jumpS))
      try Self.write(Self.image("jump \(index)"), to: folder + "/shot \(index).jpg", way: 1, modified: modified)
      usleep(5_000)
    }
    usleep(1_500_000)
    collector.signal(SIGTERM)
    #expect(try collector.wait() == 0)
    try finish("--times", "mtime")
    try expectEachOnce(written)
  }

  private static let calls = "mkdir,pwrite64,fsync,rename,renameat2,unlink,unlinkat,ftruncate,rmdir"

  /// Runs `collect` with a fault injected at one call, for at most 0.7 s.
  private func disturbed(_ fault: String, _ options: [String]) throws -> Int32 {
    try Tool.run(
      "strace",
      [
        "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(Self.calls)", "-e", "inject=\(Self.calls):\(fault)",
        "timeout", "--preserve-status", "-s", "TERM", "0.7", EncoderWorker.path, "collect", folder, "--spool", spool,
        "--end-after-pause", "600",
      ] + options
    ).status
  }

  @Test(arguments: ["signal=SIGKILL", "error=ENOSPC", "error=EIO"], [false, true])
  func killOrErrorAtAnyCallLosesNoPicture(fault: String, keeps: Bool) throws {
    let options = keeps ? ["--keep"] : []
    // The first run makes the spool; each further run makes about 40 calls.
    _ = try scratch.directory("spool/incoming")
    var written: Set<String> = []
    for call in stride(from: 1, through: 44, by: Extent.of(6, full: 1)) {
      for index in 0..<3 {
        let bytes = Self.image("call \(call) \(index)")
        written.insert(SHA256.hex(of: bytes))
        try Self.write(bytes, to: folder + "/\(1_767_859_512_000 + call * 10_000 + index * 1_000).jpg", way: 1)
      }
      _ = try disturbed("\(fault):when=\(call)", options)
      try keeps ? finish("--keep") : finish()
      try expectEachOnce(written, keeps: keeps)
    }
  }

  @Test func fullDiskPausesCollectUntilSpaceIsFree() throws {
    let disk = try scratch.directory("disk")
    guard try Tool.run("mount", ["-t", "tmpfs", "-o", "size=512k", "none", disk]).status == 0 else {
      print("skipped: no file system can be mounted here")
      return
    }
    defer { _ = try? Tool.run("umount", ["-l", disk]) }
    let spool = disk + "/spool"
    let filler = disk + "/filler"
    _ = try scratch.directory("disk/spool/incoming")
    try Data(count: 472 << 10).write(to: URL(fileURLWithPath: filler))
    let texts = (0..<50).map { "full \($0)" }
    let collector = try RunningWorker([
      "collect", folder, "--spool", spool, "--batch-every", "1", "--end-after-pause", "2",
    ])
    for (index, text) in texts.enumerated() {
      try Self.write(Self.image(text), to: folder + "/\(1_767_859_512_000 + index * 1_000).jpg", way: 1)
    }
    usleep(4_000_000)
    #expect(try names(in: folder).count == texts.count && collector.isRunning)
    unlink(filler)
    // Each file takes one page of the file system; the test moves batches away, as workers do.
    let taken = try scratch.directory("taken")
    for _ in 0..<300 where try !names(in: folder).isEmpty {
      usleep(100_000)
      for name in try names(in: spool + "/incoming") {
        if (try? Tool.output("mv", [spool + "/incoming/" + name, taken])) == nil { continue }
      }
    }
    collector.signal(SIGTERM)
    #expect(try collector.wait() == 0)
    for name in try names(in: spool + "/incoming") { try Tool.output("mv", [spool + "/incoming/" + name, taken]) }
    let found = try collected(in: taken)
    #expect(found == Dictionary(uniqueKeysWithValues: texts.map { (SHA256.hex(of: Self.image($0)), 1) }))
  }

  @Test func workerEncodesCollectedBatchesWithoutOptions() throws {
    for index in 0..<6 {
      try FileManager.default.copyItem(
        atPath: Fixture("exact-1fps").path + String(format: "/%04d.jpg", index),
        toPath: folder + "/7-2026010808051\(index)-00.jpg")
    }
    try finish("--time-zone", "Europe/Berlin")
    let result = try Tool.run(EncoderWorker.path, ["--spool", spool, "--drain"])
    #expect(result.status == 0, "\(result.errors)")
    let session = try #require(try names(in: spool + "/output").first { !$0.hasPrefix(".") })
    #expect(session == "shots-1767855910000")
    let index = try PublishedSession(spool + "/output/\(session)").index
    #expect(index.frames == 6 && index.gaps.isEmpty)
  }

  @Test func wrongUsageExitsWith64AndSecondCollectorWith75() throws {
    for (arguments, status) in [
      ([scratch.path("none"), "--spool", spool], 64), ([folder], 64),
      ([folder, "--spool", spool, "--batch-every", "0"], 64),
      ([folder, "--spool", spool, "--session", "a b"], 64), ([folder, "--spool", spool, "--times", "ctime"], 64),
      ([spool + "/incoming", "--spool", spool], 64),
    ] as [([String], Int32)] {
      let result = try Tool.run(EncoderWorker.path, ["collect"] + arguments)
      #expect(result.status == status, "\(arguments): \(result.errors)")
    }
    let first = try RunningWorker(["collect", folder, "--spool", spool])
    for _ in 0..<600 where !FileManager.default.fileExists(atPath: spool + "/collect") { usleep(50_000) }
    usleep(300_000)
    let second = try Tool.run(EncoderWorker.path, ["collect", folder, "--spool", spool])
    #expect(second.status == 75 && second.errors.contains("another collect watches it"), "\(second.errors)")
    first.signal(SIGTERM)
    #expect(try first.wait() == 0)
  }
}
