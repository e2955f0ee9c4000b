import Foundation
import TestSupport
import Testing

/// `run --ingest` killed at any step: all that was answered with 201 is published, once.
@Suite struct IngestCrashTests {
  /// The calls of a request that change files.
  private static let calls = "mkdir,fsync,rename,renameat,renameat2,unlink,unlinkat,rmdir,ftruncate,link"

  /// Runs a client until the worker dies, or the client has ended; kills the worker before the call of this number in any thread.
  ///
  /// - Returns: whether the worker has died.
  private func crash(_ spool: TestSpool, at call: Int, _ client: (RunningIngest) throws -> Void) throws -> Bool {
    let ingest = try RunningIngest(["--spool", spool.path])
    let strace = Process()
    let log = try ScratchDirectory()
    strace.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    strace.arguments = [
      "strace", "-f", "-p", "\(ingest.processIdentifier)", "-o", "/dev/null", "-e", "trace=\(Self.calls)", "-e",
      "inject=\(Self.calls):signal=SIGKILL:when=\(call)",
    ]
    let errors = try log.file("errors", [])
    strace.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
    try strace.run()
    try waitUntil("strace is attached") {
      try String(contentsOfFile: errors, encoding: .utf8).contains("attached") || !strace.isRunning
    }
    do {
      try client(ingest)
      // It may die over the batch.
      usleep(100_000)
    } catch {
      // The worker dies before its answer. The system tells so once strace has seen it.
      try waitUntil("the worker is dead") { ingest.wasKilled }
    }
    let hasDied = ingest.wasKilled
    ingest.kill()
    strace.waitUntilExit()
    return hasDied
  }

  @Test func crashAtAnyCallLosesNoBatch() throws {
    var crashes = 0
    for call in 1...Extent.of(14, full: 60) {
      let spool = try TestSpool()
      let batch = try IngestTests.batch("film")
      var status = 0
      let hasDied = try crash(spool, at: call) { status = try $0.send("PUT", "/v1/batches/a.tar", body: batch).status }
      crashes += hasDied ? 1 : 0
      #expect(hasDied || status == 201, "\(call): \(status)")
      let next = try RunningIngest(["--spool", spool.path])
      // The client that got no answer repeats the request; another one is not let in between.
      let again = try next.send("PUT", "/v1/batches/a.tar", body: batch)
      #expect(status == 201 ? again.status == 200 : [200, 201].contains(again.status), "\(call): \(again.text)")
      #expect(try next.send("PUT", "/v1/batches/a.tar", body: IngestTests.batch("other")).status == 409)
      #expect(next.stop() == 0)
      try spool.drain()
      #expect(try spool.isAtRest && spool.names("tmp").isEmpty && spool.names("quarantine").isEmpty, "\(call)")
      #expect(try spool.names("output/film").filter { $0.hasSuffix(".mp4") }.count == 1, "\(call)")
    }
    #expect(crashes > 2)
  }

  @Test func crashAtAnyCallLosesNoPicture() throws {
    let pictures = try (0..<4).map { try Data(Fixture("exact-1fps").bytes(String(format: "%04d.jpg", $0))) }
    let startMs = 1_767_859_512_340
    var crashes = 0
    func post(_ number: Int, to ingest: RunningIngest) throws -> Int {
      try ingest.send(
        "POST", "/v1/sessions/film/frames?t=\(startMs + 1_000 * number)", ["Content-Type": "image/jpeg"],
        body: pictures[number]
      ).status
    }
    for call in 1...Extent.of(14, full: 60) {
      let spool = try TestSpool()
      var answered: Set<Int> = []
      let hasDied = try crash(spool, at: call) { ingest in
        for number in pictures.indices where try post(number, to: ingest) == 201 { answered.insert(number) }
        // A batch is made of the pictures.
        _ = try? ingest.send("POST", "/v1/sessions/film/end")
        _ = ingest.stop()
      }
      crashes += hasDied ? 1 : 0
      let next = try RunningIngest(["--spool", spool.path])
      for number in pictures.indices {
        let status = try post(number, to: next)
        #expect(
          answered.contains(number) ? status == 200 : [200, 201].contains(status), "\(call) \(number): \(status)")
      }
      #expect(try next.send("POST", "/v1/sessions/film/end").status == 202)
      #expect(next.stop() == 0)
      for part in ["held", "drafts"] { #expect(try spool.names("ingest/film/" + part).isEmpty, "\(call)") }
      try spool.drain()
      #expect(try spool.isAtRest && spool.names("tmp").isEmpty && spool.names("quarantine").isEmpty, "\(call)")
      let session = try PublishedSession(spool.output + "/film")
      let frames = session.manifests.flatMap(\.frames)
      let shown = frames.filter { $0.status == "captured" }.map { Int($0.timeMs) }
      #expect(shown == pictures.indices.map { startMs + 1_000 * $0 }, "\(call)")
    }
    #expect(crashes > 4)
  }
}
