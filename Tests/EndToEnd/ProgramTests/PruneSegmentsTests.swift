import Foundation
import TestSupport
import Testing

/// `prune --retain` and `run --retain`, as an operator runs them. All captures are of January, and so are all publications but the last.
@Suite struct PruneSegmentsTests {
  private static let startMs: Int64 = 1_767_859_512_340

  private let spool: TestSpool
  private let session: String

  init() throws {
    spool = try TestSpool()
    session = spool.output + "/walk"
  }

  private func prune(_ path: String, _ options: String...) throws -> Tool.Result {
    try Tool.run(EncoderWorker.path, ["prune", "--spool", path] + options)
  }

  /// Adds batches of two seconds each. One job publishes them in their order.
  private func publish(_ batches: Range<Int>, jobs: Int = 1, _ options: String...) throws {
    for number in batches { try spool.addSmall("walk@\(number)", startMs: Self.startMs + Int64(number) * 2_000) }
    let result = try Tool.run(EncoderWorker.path, ["--spool", spool.path, "--drain", "--jobs", "\(jobs)"] + options)
    #expect(result.status == 0, "\(result.errors)")
    try dateSegments(of: session)
  }

  /// Sets the times of all manifests but the last one.
  private func dateSegments(of session: String) throws {
    // Events of Sentry have longer names.
    let manifests = try names(in: session).filter {
      $0.hasPrefix("segment-") && $0.hasSuffix(".json") && $0.count == 26
    }
    for name in manifests.dropLast() {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSince1970: Double(Self.startMs / 1_000))],
        ofItemAtPath: session + "/" + name)
    }
  }

  private func starts() throws -> [Int] {
    try names(in: session).filter { $0.hasPrefix("segment-") && $0.hasSuffix(".mp4") }
      .compactMap { Int($0.dropFirst(8).prefix(13)).map { ($0 - Int(Self.startMs)) / 2_000 } }
  }

  private struct Line: Decodable {
    let path: String
    let what: String
    let bytes: Int
    let segments: Int
    let untilMs: Int64
  }

  @Test func oldSegmentsAreRemovedAndListed() throws {
    try publish(0..<10)
    #expect(try prune(spool.path, "--retain", "520w").errors == "nothing to remove\n")
    let said = try prune(spool.path, "--retain", "7d", "--dry-run", "--json")
    #expect(try starts() == Array(0..<10))
    let gone = try prune(spool.path, "--retain", "7d", "--json")
    #expect(gone.status == 0 && gone.text == said.text, "\(gone.errors)")
    let line = try gone.json(as: Line.self)
    #expect(line.path == session && line.segments == 9 && line.untilMs == Self.startMs + 18_000)
    #expect(line.what == "9 segments that ended by 2026-01-08T08:05:30.340Z" && line.bytes > 0)
    #expect(gone.errors.contains(#/^1 removed, [0-9.]+ kB/#))
    #expect(try starts() == [9])
    #expect(try EncoderWorker.run("verify", session).status == 0)
    #expect(try prune(spool.path, "--retain", "7d").errors == "nothing to remove\n")
    // A late batch is refused, and the session goes on.
    try publish(3..<4, "--log-level", "info")
    try publish(10..<12)
    #expect(try starts() == [9, 10, 11])
  }

  @Test func maximumOfBytesRemovesTheOldest() throws {
    try publish(0..<10)
    let room = try diskBytes(of: session) / 2
    let result = try prune(spool.path, "--max-bytes", "\(room)")
    let left = try starts()
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text.hasPrefix("\(session): \(10 - left.count) segments that ended by "), "\(result.text)")
    #expect((3...6).contains(left.count) && left == Array((10 - left.count)..<10))
    #expect(try diskBytes(of: session) <= room)
    #expect(try EncoderWorker.run("verify", session).status == 0)
  }

  /// Fragments, thumbnails and words count, too.
  @Test(.enabled(if: Tool.readsText, "tesseract is not installed: scripts/setup test"))
  func aDrainLeavesATenthMoreThanMaxBytesAtMost() throws {
    let views = ["--hls", "--thumbnails", "--text", "--sentry"]
    func bytes(_ options: [String]) throws -> Int {
      let spool = try TestSpool()
      for number in 0..<20 { try spool.addSmall("walk@\(number)", startMs: Self.startMs + Int64(number) * 2_000) }
      let result = try Tool.run(
        EncoderWorker.path, ["--spool", spool.path, "--drain", "--jobs", "1"] + views + options)
      #expect(result.status == 0, "\(result.errors)")
      #expect(try EncoderWorker.run("verify", spool.output + "/walk").status == 0)
      return try diskBytes(of: spool.output)
    }
    let all = try bytes([])
    for room in [all / 2, all / 4] {
      let left = try bytes(["--max-bytes", "\(room)"])
      #expect(left <= room + room / 10 && left > room / 2, "\(left) of \(room)")
    }
  }

  @Test func aDrainWithRetainKeepsNewSegmentsAndASlidingPlaylist() throws {
    try publish(0..<4, "--hls", "--retain", "520w")
    let playlist = session + "/hls/session.m3u8"
    #expect(try !String(contentsOfFile: playlist, encoding: .utf8).contains("PLAYLIST-TYPE"))
    #expect(try starts() == [0, 1, 2, 3])
    for number in 4..<8 { try spool.addSmall("walk@\(number)", startMs: Self.startMs + Int64(number) * 2_000) }
    let result = try spool.drain("--retain", "1d", "--jobs", "1", "--log-level", "info")
    #expect(result.status == 0 && result.errors.contains("segments.removed"), "\(result.errors)")
    #expect(result.errors.contains("segments=3") && result.errors.contains("until=2026-01-08T08:05:18.340Z"))
    #expect(try starts() == Array(3..<8))
    #expect(try String(contentsOfFile: playlist, encoding: .utf8).contains("#EXT-X-MEDIA-SEQUENCE:3\n"))
    // The batch that is late is refused, and nothing of it is kept.
    try spool.addSmall("walk@late", startMs: Self.startMs + 2_000)
    let late = try spool.drain("--retain", "1d", "--log-level", "info")
    #expect(late.status == 0 && late.errors.contains("1 batch refused"), "\(late.errors)")
    #expect(late.errors.contains("earlier segments were removed"))
    #expect(try starts() == Array(3..<8) && spool.isAtRest)
  }

  /// Jobs publish out of order: then entries have higher numbers, and none that named another entry.
  @Test func aDrainOfManyJobsKeepsASlidingPlaylist() throws {
    let many = Extent.of(16, full: 200)
    try publish(0..<many, jobs: 8, "--hls", "--retain", "520w")
    try publish(many..<many + 1, "--retain", "1d")
    let left = try starts()
    #expect(left.last == many && left.count <= 2)
    let hls = session + "/hls"
    let playlist = try String(contentsOfFile: hls + "/session.m3u8", encoding: .utf8)
    let number = try #require(playlist.firstMatch(of: /#EXT-X-MEDIA-SEQUENCE:(\d+)\n/)?.1)
    #expect(try #require(Int(number)) >= many + 1 - left.count)
    #expect(playlist.split(separator: "\n").count { $0.hasPrefix("segment-") } == left.count)
    #expect(try Conformance.faults(ofPlaylistsIn: hls, isWindow: true) == [])
  }

  @Test func wrongLimitsAreWrongUsage() throws {
    func status(_ words: [String], _ option: String, _ value: String) throws -> Int32 {
      try Tool.run(EncoderWorker.path, words + ["--spool", spool.path, option, value]).status
    }
    for age in ["0d", "7", "week"] {
      #expect(try status(["prune"], "--retain", age) == 64 && status(["run", "--drain"], "--retain", age) == 64)
    }
    for bytes in ["0", "-1", "x"] {
      #expect(try status(["prune"], "--max-bytes", bytes) == 64)
      #expect(try status(["run", "--drain"], "--max-bytes", bytes) == 64)
    }
    // An option that removes is no setting.
    for name in ["RETAIN", "MAX_BYTES", "SEGMENTS"] {
      let result = try Tool.run(
        EncoderWorker.path, ["--spool", spool.path, "--drain"], environment: ["ENCODER_WORKER_\(name)": "7"])
      #expect(result.status == 64 && result.errors.contains("is no setting"), "\(name): \(result.errors)")
    }
  }

  /// `prune --retain` is killed before each call that changes a file or syncs one. At each point `verify` is content, and either the
  /// next `prune` or the next publication and a `prune` end with the same session.
  @Test func crashAtAnyCallIsCompletedByTheNextRun() throws {
    try publish(0..<12, "--hls", "--thumbnails", "--sentry")
    let calls = "unlink,unlinkat,rename,renameat,renameat2,link,linkat,mkdir,rmdir,fsync,fdatasync,setxattr,utimensat"
    var hasEnded = false
    var points = 0
    for index in 1...Extent.of(200, full: 400) where !hasEnded {
      // The first ones, and every third behind them.
      if index > 12 && index % Extent.of(3, full: 1) != 0 { continue }
      let copy = spool.scratch.path("copy")
      try Tool.output("cp", ["-a", spool.path, copy])
      defer { try? FileManager.default.removeItem(atPath: copy) }
      let run = try Tool.run(
        "strace",
        [
          "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e",
          "inject=\(calls):signal=SIGKILL:when=\(index)", EncoderWorker.path, "prune", "--spool", copy,
          "--retain", "1d",
        ])
      hasEnded = run.status == 0
      points += 1
      let walk = copy + "/output/walk"
      let report = try EncoderWorker.run("verify", walk)
      #expect(report.status == 0, "call \(index): \(report.text) \(report.errors)")
      if index % 2 == 0 {
        // A publication first.
        let draft = copy + "/tmp/walk@12"
        try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
        try FileManager.default.copyItem(
          atPath: Fixture("exact-1fps").path + "/0001.jpg", toPath: "\(draft)/\(Self.startMs + 24_000).jpg")
        try FileManager.default.moveItem(atPath: draft, toPath: copy + "/incoming/walk@12")
        let drain = try Tool.run(EncoderWorker.path, ["--spool", copy, "--drain"])
        #expect(drain.status == 0, "call \(index): \(drain.errors)")
        try dateSegments(of: walk)
      }
      let rest = try prune(copy, "--retain", "1d")
      #expect(rest.status == 0, "call \(index): \(rest.errors)")
      // A marker that is left tells the next worker to look at the views.
      if FileManager.default.fileExists(atPath: copy + "/output/.behind/walk") {
        #expect(try Tool.run(EncoderWorker.path, ["--spool", copy, "--drain"]).status == 0, "call \(index)")
      }
      let last = try EncoderWorker.run("verify", walk)
      #expect(last.status == 0, "call \(index): \(last.text) \(last.errors)")
      let left = try names(in: walk).filter { $0.hasPrefix("segment-") }
      #expect(left.count == 3 && left.allSatisfy { $0.hasPrefix(left[0].prefix(21)) }, "call \(index): \(left)")
      #expect(try names(in: walk + "/thumbnails").count == 2, "call \(index)")
      let playlist = try String(contentsOfFile: walk + "/hls/session.m3u8", encoding: .utf8)
      #expect(playlist.contains("#EXT-X-MEDIA-SEQUENCE:\(index % 2 == 0 ? 12 : 11)\n"), "call \(index)")
      #expect(try names(in: copy + "/output/.staging").isEmpty, "call \(index)")
      #expect(!FileManager.default.fileExists(atPath: copy + "/output/.behind/walk"), "call \(index)")
    }
    #expect(hasEnded && points > 20)
  }
}
