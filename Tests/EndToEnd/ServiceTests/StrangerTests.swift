import CLinux
import Foundation
import TestSupport
import Testing

/// Clients without a token that hold as many connections as they can. Another client is answered meanwhile.
@Suite(.serialized) struct StrangerTests {
  private struct Figures: Decodable {
    let requests: Int
    /// By status, or by the name of an error.
    let failed: [String: Int]
  }

  private static let crowds = [["127.0.0.2"], ["127.0.0.2", "127.0.0.3", "127.0.0.4"]]

  /// - Parameter path: the strangers pipeline requests for it, and the other client requests it.
  private func figures(_ port: UInt16, _ path: String, from addresses: [String], good: String) throws -> Figures {
    clinux_raise_descriptor_limit()
    let script = Fixture.root.appendingPathComponent("Tests/torture/strangers.py").path
    let arguments = [
      script, "\(port)", path, "\(Extent.of(5, full: 60))", "1000", addresses.joined(separator: ","), good,
    ]
    let output = try Tool.output(Tool.python, arguments)
    return try JSONDecoder().decode(Figures.self, from: output)
  }

  /// The last client has the address of the strangers.
  @Test(arguments: crowds.map { ($0, "127.0.0.1") } + [(crowds[0], crowds[0][0])])
  func strangersKeepNobodyOutOfIngest(addresses: [String], good: String) throws {
    let spool = try TestSpool()
    let tokens = try spool.scratch.file("tokens", Array("alice secretsecretsecret\n".utf8))
    chmod(tokens, 0o600)
    let ingest = try RunningIngest(["--spool", spool.path, "--ingest-tokens", tokens])
    let figures = try figures(ingest.port, "/v1/openapi.json", from: addresses, good: good)
    #expect(figures.requests > 0 && figures.failed.isEmpty, "\(figures.failed)")
    #expect(try ingest.residentKiB() < 150_000)
  }

  @Test(arguments: crowds) func strangersKeepNobodyOutOfServe(addresses: [String]) throws {
    let scratch = try ScratchDirectory()
    _ = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    let path = "/sessions/exact-1fps/timeline.json"
    let figures = try figures(server.port, path, from: addresses, good: "127.0.0.1")
    #expect(figures.requests > 0 && figures.failed.isEmpty, "\(figures.failed)")
  }

  @Test func picturesForClientsThatHaveLeftAreNotMade() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let server = try RunningServer(["serve", scratch.path("output")])
    let path = "/sessions/exact-1fps/frame.png?t="
    for index in 0..<300 {
      let file = try server.connection()
      defer { close(file) }
      let request = "GET \(path)\(session.index.startMs + Int64(index)) HTTP/1.1\r\nHost: localhost\r\n\r\n"
      #expect(send(file, request, request.utf8.count, 0) == request.utf8.count)
    }
    #expect(try server.get("\(path)\(session.index.startMs)").status == 200)
    var metrics = ""
    try waitUntil("no other request is active") {
      metrics = try server.get("/metrics").text
      return metrics.contains("encoder_worker_http_requests_active 1\n")
    }
    let made = metrics.firstMatch(of: /requests_total\{status="200"\} (\d+)/).flatMap { Int($0.1) }
    #expect(try #require(made) < 200, "\(metrics)")
  }

  /// The server sends the end of the answer and closes the connection before its client has read it.
  @Test func clientThatPausesGetsTheEndOfAnAnswer() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let name = "segment-1767859599999.mp4"
    let bytes = Data((0..<256 << 10).map { UInt8(truncatingIfNeeded: $0) })
    try bytes.write(to: URL(fileURLWithPath: "\(session.path)/\(name)"))
    let server = try RunningServer(["serve", scratch.path("output")])
    let file = try server.connection(bufferBytes: 4_096)
    defer { close(file) }
    let request = "GET /sessions/exact-1fps/\(name) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    #expect(send(file, request, request.utf8.count, 0) == request.utf8.count)
    sleep(5)
    #expect(try FileHandle(fileDescriptor: file, closeOnDealloc: false).readToEnd()?.suffix(bytes.count) == bytes)
  }

  /// A client reads nothing of an answer of 64 MB: its connection is closed, and its bytes leave the kernel's memory.
  @Test func unreadAnswerHoldsLittleMemoryForSomeSeconds() throws {
    let scratch = try ScratchDirectory()
    let session = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let name = "segment-1767859599999.mp4"
    #expect(FileManager.default.createFile(atPath: "\(session.path)/\(name)", contents: Data(count: 64 << 20)))
    let server = try RunningServer(["serve", scratch.path("output")])
    let file = try server.connection(bufferBytes: 4_096)
    defer { close(file) }
    let request = "GET /sessions/exact-1fps/\(name) HTTP/1.1\r\nHost: localhost\r\n\r\n"
    #expect(send(file, request, request.utf8.count, 0) == request.utf8.count)
    func unreadBytes() throws -> Int {
      let port = String(format: ":%04X", server.port)
      // The fourth and the fifth column are the state (0A: it listens) and the queues; see proc(5). The file may have 100 000 lines.
      var unread = 0
      for row in try Tool.run("grep", [port, "/proc/net/tcp"]).text.split(separator: "\n") {
        let columns = row.split(separator: " ")
        guard columns[1].hasSuffix(port), columns[3] != "0A" else { continue }
        unread += Int(columns[4].prefix(8), radix: 16) ?? 0
      }
      return unread
    }
    try waitUntil("the answer waits for its client") { try unreadBytes() > 0 }
    var most = 0
    try waitUntil("the connection and its bytes are gone", pauseMs: 200) {
      let unread = try unreadBytes()
      most = max(most, unread)
      return unread == 0
    }
    #expect(most < 1 << 20)
  }
}
