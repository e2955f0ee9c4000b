import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FileSystem

/// `collect --recursive`: a session a folder, versions of a name, days, and kills.
@Suite struct CollectFoldersTests {
  private let scratch: ScratchDirectory
  private let folder: String
  private let spool: String
  private let log: String

  init() throws {
    scratch = try ScratchDirectory()
    folder = try scratch.directory("kiosks")
    spool = scratch.path("spool")
    log = scratch.path("log")
  }

  private func start(_ options: [String]) throws -> RunningWorker {
    try RunningWorker(
      ["collect", folder, "--spool", spool, "--recursive", "--batch-every", "1"] + options,
      under: ["sh", "-c", "exec \"$@\" 2>>'\(log)'", "sh"])
  }

  /// Stops a collector, and returns all that it has said.
  private func stop(_ collector: RunningWorker) throws -> String {
    collector.signal(SIGTERM)
    #expect(try collector.wait() == 0)
    return try logged()
  }

  private func logged() throws -> String {
    FileManager.default.fileExists(atPath: log) ? try String(contentsOfFile: log, encoding: .utf8) : ""
  }

  /// Whether the collector has no copy and no draft.
  private func areHandedOver() throws -> Bool {
    try names(in: spool + "/collect").allSatisfy { home in
      try ["held", "drafts"].allSatisfy { try names(in: spool + "/collect/\(home)/" + $0).isEmpty }
    }
  }

  private func waitUntilWatched() throws { try waitUntil("collect watches") { try logged().contains("watching") } }

  /// A batch in the spool: its session, whether it is final, and the bytes of its frames in their order.
  private struct Found {
    let session: String
    let isFinal: Bool
    let frames: [[UInt8]]
  }

  private struct Description: Decodable {
    struct Frame: Decodable {
      let file: String
      let timeMs: Int64
    }

    let session: String
    let final: Bool
    let frames: [Frame]
  }

  private func batches() throws -> [Found] {
    let incoming = spool + "/incoming/"
    // A collector that is killed at once has made none.
    guard FileManager.default.fileExists(atPath: incoming) else { return [] }
    return try names(in: incoming).map { name in
      let text = try Data(contentsOf: URL(fileURLWithPath: incoming + name + "/batch.json"))
      let batch = try JSONDecoder().decode(Description.self, from: text)
      #expect(try names(in: incoming + name).count == batch.frames.count + 1)
      let frames = try batch.frames.map {
        Array(try Data(contentsOf: URL(fileURLWithPath: incoming + name + "/" + $0.file)))
      }
      return Found(session: batch.session, isFinal: batch.final, frames: frames)
    }
  }

  private static func jpeg(_ text: String) -> [UInt8] {
    [0xFF, 0xD8, 0xFF, 0xE0] + Array(text.utf8) + [0xFF, 0xD9]
  }

  /// Versions of a picture: each has a white cell at another place.
  private static func png(_ version: Int) -> [UInt8] {
    let samples = (0..<64 * 64).map { $0 / 64 / 8 * 8 + $0 % 64 / 8 == version ? 255 : 0 }
    return PNGImage.file(width: 64, height: 64, depth: 8, kind: 0, samples: samples)
  }

  /// The version that a decoded picture shows.
  private static func version(_ picture: Pixels) -> Int? {
    (0..<64).max { level(picture, $0) < level(picture, $1) }
  }

  /// The red of a cell's centre.
  private static func level(_ picture: Pixels, _ cell: Int) -> UInt8 {
    picture.bytes[3 * ((cell / 8 * 8 + 4) * picture.width + cell % 8 * 8 + 4)]
  }

  private func write(_ bytes: [UInt8], to path: String, inPlace: Bool = false) throws {
    let path = folder + "/" + path
    try FileManager.default.createDirectory(
      atPath: DurableFile.parentDirectory(of: path), withIntermediateDirectories: true)
    let target = inPlace ? path : path + ".part"
    guard let file = fopen(target, "w") else { throw Tool.Failure("open \(target)") }
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
    guard inPlace || rename(target, path) == 0 else { throw Tool.Failure("rename \(target)") }
  }

  /// Returns the number before a word of the last line, 0 without the word.
  private static func number(before word: String, in log: String) -> Int {
    let words = log.split(separator: "\n").last?.split { " ;:".contains($0) } ?? []
    return words.firstIndex { $0 == word }.flatMap { $0 > 0 ? Int(words[$0 - 1]) : nil } ?? 0
  }

  @Test(arguments: [false, true]) func eachVersionOfANameIsShownOrCounted(inPlace: Bool) throws {
    let collector = try start(["--times", "mtime", "--end-after-pause", "4"])
    try waitUntilWatched()
    for version in 0..<50 {
      try write(Self.png(version), to: "kiosk-07/snapshot.png", inPlace: inPlace)
      // A folder tells of no change before it is watched.
      usleep(version == 0 ? 3_000_000 : 40_000)
    }
    try waitUntil("the newest picture is in a batch") { try areHandedOver() }
    let said = try stop(collector)
    let frames = try batches().flatMap(\.frames)
    #expect(Set(frames).count == frames.count)
    #expect(frames.count + Self.number(before: "lost", in: said) == 50, "\(said)")
    #expect(Self.number(before: "pictures", in: said) == frames.count && frames.count > 10, "\(said)")
    let taken = Set((0..<50).filter { frames.contains(Self.png($0)) })
    #expect(taken.count == frames.count && taken.contains(49))

    let result = try Tool.run(EncoderWorker.path, ["--spool", spool, "--drain"])
    #expect(result.status == 0, "\(result.errors)")
    let session = try PublishedSession(spool + "/output/kiosk-07")
    #expect(session.captured.count == frames.count && session.manifests.allSatisfy(\.refused.isEmpty))
    let shown = try session.pictures().flatMap { $0 }.compactMap(Self.version)
    #expect(Set(shown) == taken)
    #expect(try names(in: folder + "/kiosk-07") == ["snapshot.png"])
  }

  @Test func kiosksMayComeGoAndHaveBadNames() throws {
    // Midnight between January 8 and 9 in Berlin.
    let midnightMs: Int64 = 1_767_913_200_000
    let options = [
      "--session-every", "day", "--time-zone", "Europe/Berlin", "--since", "\(midnightMs - 5_000)", "--end-after-pause",
      "5",
    ]
    func capture(_ kiosk: String, _ second: Int64) throws {
      let day = second < 0 ? "2026-01-08" : "2026/01/09"
      try write(Self.jpeg("\(kiosk) \(second)"), to: "\(kiosk)/\(day)/\(midnightMs + second * 1_000).jpg")
    }
    for kiosk in 0..<20 { for second in [-9, -2] as [Int64] { try capture("kiosk-\(kiosk)", second) } }
    try capture("Halle Süd", -1)
    let collector = try start(options)
    try waitUntilWatched()
    try waitUntil("the name is reported") { try logged().contains("Halle") }
    for second in -1...2 as ClosedRange<Int64> {
      for kiosk in 0..<20 { try capture("kiosk-\(kiosk)", second) }
      usleep(300_000)
    }
    try capture("late", 1)
    // All pictures but the newest of each kiosk.
    try waitUntil("batches") { try batches().flatMap(\.frames).count >= 20 * 4 }
    try FileManager.default.removeItem(atPath: folder + "/kiosk-3")
    usleep(100_000)
    try capture("late", 2)
    // The newest picture of each kiosk, and those of a folder that is not watched yet.
    try waitUntil("all pictures are in batches") {
      // The newest one of the kiosk whose folder is gone may be lost.
      try batches().flatMap(\.frames).count >= 20 * 5 + 1
    }
    let said = try stop(collector)
    let made = try batches()
    let expected = (0..<20).flatMap { ["kiosk-\($0)-2026-01-08", "kiosk-\($0)-2026-01-09"] } + ["late-2026-01-09"]
    #expect(Set(made.map(\.session)) == Set(expected))
    #expect(Set(made.filter(\.isFinal).map(\.session)) == Set((0..<20).map { "kiosk-\($0)-2026-01-08" }))
    let frames = made.flatMap(\.frames)
    #expect(Set(frames).count == frames.count)
    let lost = Self.number(before: "lost", in: said)
    #expect(frames.count + lost == 20 * 5 + 2, "\(said)")
    #expect(Self.number(before: "older", in: said) == 20, "\(said)")
    #expect(said.contains("--session Halle-S-d"), "\(said)")
    #expect(said.split(separator: "\n").filter { $0.contains("folder is not collected") }.count == 1, "\(said)")
  }

  @Test(arguments: [false, true]) func noPictureOfManyFoldersIsLostOrDoubledByKills(areVersions: Bool) throws {
    let least = Extent.of(60, full: 600)
    let startMs: Int64 = 1_767_859_512_000
    let options = areVersions ? ["--times", "mtime"] : []
    let folder = folder
    // The producer goes on until enough has been collected: a slow machine sees few versions.
    let isEnough = Atomic(false)
    let written = Atomic(0)
    let producer = Thread {
      for round in 0..<10 * least where round < least || !isEnough.load(ordering: .relaxed) {
        for kiosk in 0..<20 {
          let path =
            folder + "/kiosk-\(kiosk)/" + (areVersions ? "snapshot" : "\(startMs + Int64(round) * 200)") + ".jpg"
          mkdir(folder + "/kiosk-\(kiosk)", 0o755)
          try? Data(Self.jpeg("\(kiosk) \(round)")).write(to: URL(fileURLWithPath: path + ".part"))
          rename(path + ".part", path)
        }
        written.store(round + 1, ordering: .sequentiallyConsistent)
        usleep(100_000)
      }
    }
    producer.start()
    var random = Random(seed: areVersions ? 2 : 1)
    while !producer.isFinished {
      let collector = try start(options)
      usleep(UInt32(random.int(50_000...900_000)))
      collector.signal(SIGKILL)
      _ = try collector.wait()
      let taken = try batches().reduce(0) { $0 + $1.frames.count }
      isEnough.store(!areVersions || taken > 20 * 5, ordering: .relaxed)
    }
    let rounds = written.load(ordering: .sequentiallyConsistent)
    let newest = (0..<20).map { Self.jpeg("\($0) \(rounds - 1)") }
    var said = ""
    // Two scans find a file; a slow machine may need several runs.
    for _ in 0..<20 {
      let last = try start(options + ["--end-after-pause", "1"])
      usleep(5_000_000)
      said = try stop(last)
      let taken = Set(try batches().flatMap(\.frames))
      if newest.allSatisfy(taken.contains) { break }
    }
    let frames = try batches().flatMap(\.frames)
    #expect(Set(frames).count == frames.count, "\(said)")
    // Versions that were replaced while no collector ran are lost, but never the newest.
    #expect(newest.allSatisfy(Set(frames).contains), "\(said)")
    if areVersions {
      #expect(frames.count > 20 * 5)
    } else {
      #expect(frames.count == 20 * rounds, "\(said)")
      #expect(try (0..<20).allSatisfy { try names(in: folder + "/kiosk-\($0)").isEmpty })
    }
    #expect(try areHandedOver())
  }

  /// The batches of many folders share one sync, of copies and of removed pictures.
  @Test(arguments: ["signal=SIGKILL", "error=EIO"]) func failureOfASharedSyncLosesNoPicture(fault: String) throws {
    let trace = scratch.path("trace")
    func areEmpty() throws -> Bool { try (0..<12).allSatisfy { try names(in: folder + "/kiosk-\($0)").isEmpty } }
    var written: Set<[UInt8]> = []
    for call in 1...4 {
      for kiosk in 0..<12 {
        for picture in 0..<2 {
          let bytes = Self.jpeg("\(call) \(kiosk) \(picture)")
          written.insert(bytes)
          try write(bytes, to: "kiosk-\(kiosk)/\(1_767_859_512_000 + call * 10_000 + picture * 1_000).jpg")
        }
      }
      let program = [
        EncoderWorker.path, "collect", folder, "--spool", spool, "--recursive", "--batch-every", "1",
        "--end-after-pause", "1",
      ]
      let stopped = ["timeout", "--preserve-status", "-s", "TERM", "5"] + program
      let injection = call < 4 ? ["-e", "inject=syncfs:\(fault):when=\(call)"] : []
      let traced = ["-f", "-qq", "-A", "-o", trace, "-e", "trace=syncfs"] + injection + stopped
      let result = try Tool.run("strace", traced)
      if call < 4 { continue }
      #expect(result.status == 0, "\(result.errors)")
      // A slow machine may need several runs.
      for _ in 0..<20 where try !areEmpty() { _ = try Tool.run("strace", traced) }
      let isShared = try Directory(opening: spool).syncFileSystem()
      #expect(try String(contentsOfFile: trace, encoding: .utf8).contains("syncfs(") == isShared)
    }
    let frames = try batches().flatMap(\.frames)
    #expect(Set(frames) == written && frames.count == written.count)
    #expect(try areEmpty())
  }

  @Test(arguments: [
    ["--session-every", "day"], ["--session-every", "25h", "--time-zone", "UTC"], ["--since", "+5s"],
    ["--since", "2026-01-08T08:05:12"], ["--since", "yesterday"],
  ])
  func wrongOptionsAreRefused(options: [String]) throws {
    let result = try Tool.run(EncoderWorker.path, ["collect", folder, "--spool", spool] + options)
    #expect(result.status == 64 && result.errors.contains(options[0] + ": "), "\(result.errors)")
  }
}
