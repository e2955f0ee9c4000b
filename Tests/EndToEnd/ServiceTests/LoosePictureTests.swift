import Foundation
import TestSupport
import Testing

/// From what a producer has sent, or a collector has removed, to what a session shows: over stops, ends and deletions.
@Suite struct LoosePictureTests {
  private static let startMs: Int64 = 1_767_859_512_340
  private let spool: TestSpool
  private let folder: String

  init() throws {
    spool = try TestSpool()
    folder = try spool.scratch.directory("shots")
  }

  private static func picture(_ number: Int) throws -> [UInt8] {
    try Fixture("exact-1fps").bytes(String(format: "%04d.jpg", number % 12))
  }

  private func post(_ number: Int, afterMs: Int64, to ingest: RunningIngest) throws -> Int {
    try ingest.send(
      "POST", "/v1/sessions/film/frames?t=\(Self.startMs + afterMs)", ["Content-Type": "image/jpeg"],
      body: Data(Self.picture(number))
    ).status
  }

  /// Renames a picture to a name that may be taken, as recorders do.
  private func write(_ number: Int, as name: String, afterMs: Int64) throws {
    let draft = folder + "/.draft"
    try Data(Self.picture(number)).write(to: URL(fileURLWithPath: draft))
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: Double(Self.startMs + afterMs) / 1_000)], ofItemAtPath: draft)
    #expect(rename(draft, folder + "/" + name) == 0)
  }

  private func collect(_ options: String...) throws -> RunningWorker {
    try RunningWorker(
      ["collect", folder, "--spool", spool.path, "--session", "film", "--batch-every", "1", "--end-after-pause", "600"]
        + options)
  }

  /// The captures of the session, from its start.
  private func shown() throws -> [Int64] {
    try PublishedSession(spool.output + "/film").captured.map { Int64($0.timeMs) - Self.startMs }
  }

  private var isComplete: Bool {
    (try? String(contentsOfFile: spool.output + "/film/session.json", encoding: .utf8))?.contains(#""complete":true"#)
      ?? false
  }

  private func held() throws -> Int {
    try spool.names("collect").reduce(0) { try $0 + spool.names("collect/\($1)/held").count }
      + spool.names("ingest/film/held").count
  }

  /// A deploy: pictures are nearer to each other than an interval, so a guessed hold would overlap the next one.
  @Test func stopOfTheWorkerMakesNothingConflict() throws {
    var sent: [Int64] = []
    for round in 0..<4 as Range<Int64> {
      let ingest = try RunningIngest(["--spool", spool.path])
      for number in 0..<3 as Range<Int64> {
        let afterMs = round * 1_000 + number * 1_000 / 3
        #expect(try post(Int(3 * round + number), afterMs: afterMs, to: ingest) == 201)
        sent.append(afterMs)
      }
      if round == 3 { #expect(try ingest.send("POST", "/v1/sessions/film/end").status == 202) }
      #expect(ingest.stop() == 0)
    }
    try spool.drain()
    #expect(try spool.names("quarantine").isEmpty && shown() == sent && isComplete)
  }

  /// A device without a network: its next picture comes after the pause, and was captured within the hold of the last one.
  @Test func pictureBehindAPauseClosesTheGuessedHold() throws {
    let ingest = try RunningIngest(["--spool", spool.path])
    for number in 0...1 { #expect(try post(number, afterMs: Int64(number) * 1_000, to: ingest) == 201) }
    try spool.waitUntil("the pause is over") { try held() == 0 }
    #expect(try post(2, afterMs: 1_200, to: ingest) == 201)
    #expect(try post(3, afterMs: 2_000, to: ingest) == 201)
    #expect(try ingest.send("POST", "/v1/sessions/film/end").status == 202)
    #expect(ingest.stop() == 0)
    try spool.drain()
    #expect(try spool.names("quarantine").isEmpty && shown() == [0, 1_000, 1_200, 2_000])
    let verified = try EncoderWorker.run("verify", spool.output + "/film")
    #expect(verified.status == 0, "\(verified.errors)")
    let film = spool.scratch.path("film.mp4")
    #expect(try EncoderWorker.run("stitch", spool.output + "/film", "--to", film).status == 0)
    // The picture track of the film has each of them at its capture.
    #expect(try Probe(film).packets(of: 1).map { $0.pts / 90 } == [0, 1_000, 1_200, 2_000])
  }

  @Test(arguments: [false, true]) func endWaitsForPicturesOfABatcher(isRunning: Bool) throws {
    let ingest = try RunningIngest(["--spool", spool.path])
    for number in 0..<4 { #expect(try post(number, afterMs: Int64(number) * 1_000, to: ingest) == 201) }
    if !isRunning {
      ingest.kill()
      let status = try EncoderWorker.run("status", "--spool", spool.path, "--json")
      #expect(try status.text.contains("\"pictures\":\(held()),"), "\(status.text)")
    }
    let end = try EncoderWorker.run("end", "film", "--spool", spool.path)
    #expect(end.status == 0, "\(end.errors)")
    if isRunning {
      try spool.waitUntil("the session has ended") { isComplete }
      #expect(ingest.stop() == 0)
    } else {
      try spool.drain()
    }
    #expect(try shown() == [0, 1_000, 2_000, 3_000] && isComplete && held() == 0)
  }

  /// The process that has the pictures is asked, and dies before it does anything. The next worker has no listener.
  @Test(arguments: [false, true]) func endOutlivesTheProcessThatWasAsked(isCollected: Bool) throws {
    func expectEnd(_ signal: (Int32) -> Void) throws {
      signal(SIGSTOP)
      let end = try EncoderWorker.run("end", "film", "--spool", spool.path)
      #expect(end.status == 0, "\(end.errors)")
      signal(SIGKILL)
      try spool.drain()
      #expect(try shown() == [0, 1_000] && isComplete && held() == 0)
      #expect(try spool.names("closing").flatMap { try spool.names("closing/\($0)") }.isEmpty)
    }
    if isCollected {
      let collector = try collect("--times", "mtime")
      try spool.waitUntil("it watches") { try !spool.names("collect").isEmpty }
      usleep(500_000)
      for number in 0...1 {
        try write(number, as: "shot.jpg", afterMs: Int64(number) * 1_000)
        try spool.waitUntil("the version is copied") { try held() + batches() > number }
      }
      try expectEnd(collector.signal)
    } else {
      let ingest = try RunningIngest(["--spool", spool.path])
      for number in 0...1 { #expect(try post(number, afterMs: Int64(number) * 1_000, to: ingest) == 201) }
      try expectEnd(ingest.signal)
    }
  }

  @Test(arguments: [false, true]) func endWaitsForPicturesOfACollector(isRunning: Bool) throws {
    let collector = try collect("--times", "mtime")
    try spool.waitUntil("it watches") { try !spool.names("collect").isEmpty }
    usleep(500_000)
    for number in 0..<4 {
      try write(number, as: "snapshot.jpg", afterMs: Int64(number) * 1_000)
      try spool.waitUntil("the version is copied") {
        try held() + batches() > number
      }
    }
    if !isRunning {
      collector.signal(SIGKILL)
      _ = try collector.wait()
    }
    #expect(try EncoderWorker.run("end", "film", "--spool", spool.path).status == 0)
    try spool.waitUntil("nothing is held") { try held() == 0 }
    try spool.waitUntil("the session has ended") {
      try spool.drain()
      return isComplete
    }
    #expect(try shown() == [0, 1_000, 2_000, 3_000] && spool.names("quarantine").isEmpty)
    if isRunning {
      collector.signal(SIGTERM)
      #expect(try collector.wait() == 0)
    }
  }

  /// The pictures in batches that wait.
  private func batches() throws -> Int {
    try spool.names("incoming").reduce(0) { try $0 + spool.names("incoming/\($1)").count - 1 }
  }

  @Test(arguments: [false, true]) func deletionTakesThePicturesThatWait(isRunning: Bool) throws {
    let collector = try collect("--times", "mtime")
    try spool.waitUntil("it watches") { try !spool.names("collect").isEmpty }
    usleep(500_000)
    for number in 0..<3 {
      try write(number, as: "snapshot.jpg", afterMs: Int64(number) * 1_000)
      try spool.waitUntil("the version is copied") { try held() + batches() > number }
    }
    let ingest = try RunningIngest(["--spool", spool.path])
    #expect(try post(9, afterMs: 9_000, to: ingest) == 201)
    _ = try spool.scratch.directory("spool/output")
    if !isRunning {
      collector.signal(SIGKILL)
      _ = try collector.wait()
      ingest.kill()
    }
    let deletion = try EncoderWorker.run("delete", "film", "--spool", spool.path)
    #expect(deletion.status == 0, "\(deletion.errors)")
    if isRunning {
      collector.signal(SIGTERM)
      #expect(try collector.wait() == 0 && ingest.stop() == 0)
    }
    #expect(try held() == 0)
    try spool.drain()
    #expect(try spool.isAtRest && spool.names("output").filter { $0 == "film" }.isEmpty)
  }
}
