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
}
