import Foundation
import TestSupport
import Testing

/// Downloads of long films, by many clients and by clients that leave.
@Suite struct FilmRequestTests {
  private let scratch: ScratchDirectory
  private let server: RunningServer

  init() throws {
    scratch = try ScratchDirectory()
    _ = try LongSession.make(of: 1_200, in: scratch, output: "long")
    server = try RunningServer(["serve", scratch.path("long")])
    // The manifests are read once.
    #expect(try server.get("/sessions/exact-1fps/timeline.json").status == 200)
  }

  private func request(_ query: String = "") -> String {
    "GET /sessions/exact-1fps/session.mp4\(query) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
  }

  private func send(_ text: String, on file: Int32) {
    #expect(Glibc.send(file, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
  }

  private func reply(on file: Int32) throws -> Data {
    try FileHandle(fileDescriptor: file, closeOnDealloc: false).readToEnd() ?? Data()
  }

  @Test func filmsOfClientsThatHaveLeftAreNotMade() async throws {
    for number in 0..<30 {
      let file = try server.connection()
      send(request("?speed=1.0\(10 + number)"), on: file)
      close(file)
    }
    #expect(try server.get("/sessions/exact-1fps/session.mp4?to=%2B60s").status == 200)
    try await eventually("the abandoned requests have ended") {
      try server.get("/metrics").text.contains("encoder_worker_http_requests_active 1\n")
    }
    // A film may be ready before the server sees that its client has left; eight films are kept.
    #expect(try server.unnamedFiles().count <= 3)
  }

  /// As `printf 'GET …' | nc -N` does.
  @Test(arguments: ["session.mp4?speed=1.5", "iframes.m3u8", "thumbnail.jpg"])
  func clientThatSendsNothingMoreGetsItsAnswer(name: String) throws {
    for version in ["1.0", "1.1"] {
      let file = try server.connection()
      defer { close(file) }
      send("GET /sessions/exact-1fps/\(name) HTTP/\(version)\r\nHost: localhost\r\nConnection: close\r\n\r\n", on: file)
      shutdown(file, Int32(SHUT_WR))
      let answer = try reply(on: file)
      let head = String(decoding: answer.prefix(1_000), as: UTF8.self)
      #expect(head.hasPrefix("HTTP/1.1 200 "), "\(name): \(head.prefix(40))")
      let end = try #require(answer.firstRange(of: Data("\r\n\r\n".utf8)))
      // The report of a difference would take long.
      let isWhole = answer[end.upperBound...] == (try server.get("/sessions/exact-1fps/\(name)").body)
      #expect(isWhole, "\(name)")
    }
  }

  @Test func playlistOfAClientThatHasLeftIsNotMade() async throws {
    let log = scratch.path("log")
    let server = try RunningServer(["serve", scratch.path("long"), "--sandbox", "off"], openedTo: log)
    #expect(try server.get("/sessions/exact-1fps/timeline.json").status == 200)
    let file = try server.connection()
    send("GET /sessions/exact-1fps/iframes.m3u8 HTTP/1.1\r\nHost: localhost\r\n\r\n", on: file)
    close(file)
    try await eventually("the abandoned request has ended") {
      let metrics = try server.get("/metrics").text
      return metrics.contains("requests_active 1\n") && metrics.contains("requests_total{status=\"499\"} 1\n")
    }
    let opened = try String(contentsOfFile: log, encoding: .utf8).components(separatedBy: "\n")
    let videos = opened.count { $0.contains(".mp4\"") }
    #expect(videos < 1_200, "\(videos)")
  }

  @Test func requestsBeyondTheQueueAreToldToTryAgain() throws {
    let clients = try (0..<40).map { _ in try server.connection() }
    for (number, file) in clients.enumerated() { send(request("?speed=2.0\(10 + number)"), on: file) }
    let heads = try RunningServer.answers(on: clients).map {
      String(decoding: $0.prefix(1_000), as: UTF8.self).components(separatedBy: "\r\n\r\n")[0]
    }
    let refused = heads.filter { $0.hasPrefix("HTTP/1.1 503 ") }
    #expect(!refused.isEmpty && heads.allSatisfy { $0.hasPrefix("HTTP/1.1 200 ") || $0.hasPrefix("HTTP/1.1 503 ") })
    #expect(refused.allSatisfy { $0.contains("\r\nRetry-After: 10\r\n") })
    #expect(try server.unnamedFiles().count <= 8)
    #expect(try server.get("/sessions/exact-1fps/session.mp4?to=%2B60s").status == 200)
  }

  /// A film is larger than the buffers of a connection, so that its client holds it.
  @Test func filmsThatAreReadAreNotReplacedByOthers() throws {
    // All are made before the first is held: the server closes a connection that takes nothing for 30 s, and a busy
    // machine needs some seconds for each film.
    let films = (0..<8).map { "?speed=3.0\(10 + $0)" }
    for film in films { #expect(try server.get("/sessions/exact-1fps/session.mp4\(film)").status == 200) }
    var clients: [Int32] = []
    defer { for file in clients { close(file) } }
    for film in films {
      let file = try server.connection(bufferBytes: 4_096)
      clients.append(file)
      send(request(film), on: file)
      var byte: UInt8 = 0
      #expect(recv(file, &byte, 1, 0) == 1 && byte == UInt8(ascii: "H"))
    }
    let refused = try server.get("/sessions/exact-1fps/session.mp4?to=%2B60s")
    #expect(refused.status == 503 && refused.headers["retry-after"] == "10", "\(refused.status)")
    #expect(try server.unnamedFiles().count == 8)
    // The client gets its film to the end.
    #expect(try reply(on: clients[0]).count > server.unnamedFiles().min() ?? .max)
  }

  @Test func filmOfADeletedSessionIsGoneWhileAClientReadsIt() async throws {
    #expect(try server.get("/sessions/exact-1fps/session.mp4?to=%2B60s").status == 200)
    let file = try server.connection(bufferBytes: 4_096)
    send(request(), on: file)
    var byte: UInt8 = 0
    #expect(recv(file, &byte, 1, 0) == 1)
    let sizes = try server.unnamedFiles()
    #expect(sizes.count == 2)
    let deletion = try EncoderWorker.run("delete", "exact-1fps", "--output", scratch.path("long"))
    #expect(deletion.status == 0, "\(deletion.errors)")
    try await eventually("no film has bytes") { try server.unnamedFiles().allSatisfy { $0 == 0 } }
    #expect(try server.get("/sessions/exact-1fps/session.mp4").status == 410)
    // The answer ends early. Its client had stopped reading, so the close may drop what it has not taken, with a reset.
    #expect(try RunningServer.answers(on: [file])[0].count < sizes.max() ?? 0)
    try await eventually("no film is open") { try server.unnamedFiles().isEmpty }
  }
}
