import Foundation
import TestSupport
import Testing

/// `delete` beside workers and servers.
@Suite struct DeleteRaceTests {
  private let spool: TestSpool

  init() throws { spool = try TestSpool() }

  /// Two workers publish into the session, keep and quarantine its batches, while it is deleted.
  @Test func workersDoNotBringASessionBack() throws {
    let startMs: Int64 = 1_767_859_512_340
    let frames = try (0..<4).map { try Fixture("exact-1fps").bytes(String(format: "%04d.jpg", $0)) }
    let pictures = try PictureBytes(in: (0..<4).map { Fixture("exact-1fps").path + String(format: "/%04d.jpg", $0) })
    let workers = try (0..<2).map { _ in try spool.start("--keep-batches", "--hls", "--thumbnails", "--jobs", "2") }
    defer { for worker in workers { worker.signal(SIGKILL) } }
    try spool.waitUntil("the workers have made the output") { FileManager.default.fileExists(atPath: spool.output) }
    var added = 0
    for round in 0..<Extent.of(6, full: 60) {
      let session = "walk\(round)"
      for number in 0..<12 {
        added += 1
        let name = "\(session)@\(number)"
        // Every third overlaps the one before with other frames: a conflict.
        let atMs = startMs + Int64(number - (number % 3 == 2 ? 1 : 0)) * 4_000
        try spool.addSmall(name, startMs: atMs, frames: [number % 4, (number + 1) % 4])
        if number % 4 == 3 {
          try spool.add(file: "\(name).tar", Array(("broken" + session).utf8) + frames[number % 4])
        }
        if number == 2 + round % 8 {
          let result = try Tool.run(EncoderWorker.path, ["delete", session, "--spool", spool.path], verifying: false)
          #expect(result.status == 0, "\(result.errors)")
        }
      }
    }
    try spool.waitUntil("all batches are done") { try spool.names("incoming").isEmpty }
    for worker in workers { worker.signal(SIGTERM) }
    for worker in workers { #expect(try worker.wait() == 0) }
    #expect(try spool.drain("--keep-batches").status == 0)
    #expect(try spool.isAtRest)
    #expect(try pictures.copies(below: spool.path) == [])
    #expect(try names(in: spool.output) == [".deleted", ".staging"])
    #expect(added > 0)
  }

  @Test func serverAnswersGone() throws {
    try spool.addSmall("walk@1", startMs: 1_767_859_512_340)
    try spool.addSmall("other@1", startMs: 1_767_859_512_340)
    #expect(try spool.drain("--hls").status == 0)
    let server = try RunningServer(["serve", spool.output])
    let paths = [
      "/sessions/walk", "/sessions/walk/", "/sessions/walk/timeline.json", "/sessions/walk/session.mp4",
      "/sessions/walk/session.json", "/sessions/walk/segment-1767859512340.mp4", "/sessions/walk/thumbnail.jpg",
      "/sessions/walk/a/b",
    ]
    for path in paths { #expect(try server.get(path).status != 410, "\(path)") }
    #expect(try EncoderWorker.run("delete", "walk", "--spool", spool.path, "--reason", "secret").status == 0)
    for path in paths {
      let reply = try server.get(path)
      #expect(reply.status == 410, "\(path): \(reply.status)")
      #expect(reply.text.contains("session walk was deleted at") && !reply.text.contains("secret"), "\(reply.text)")
    }
    #expect(try server.get("/sessions.json").text.contains("walk") == false)
    #expect(try server.get("/sessions/other/timeline.json").status == 200)
    #expect(try server.get("/sessions/never/timeline.json").status == 404)
    #expect(try EncoderWorker.run("delete", "walk", "--spool", spool.path, "--undelete").status == 0)
    #expect(try server.get("/sessions/walk/timeline.json").status == 404)
    #expect(server.stop() == 0)
  }
}
