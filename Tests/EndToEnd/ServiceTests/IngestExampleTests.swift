import Foundation
import TestSupport
import Testing

/// The clients of examples/ingest send a batch although the connection breaks and the worker asks to wait.
@Suite struct IngestExampleTests {
  private let spool: TestSpool
  private let ingest: RunningIngest
  private let proxy: Process
  private let port: Int
  private let scratch: ScratchDirectory
  private static let hasKotlin = (try? Tool.run("kotlinc", ["-version"]).status) == 0

  /// A proxy that breaks the first connection, and asks to wait on the second.
  private static let script = """
    import http.client, http.server, sys
    count = 0
    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            global count
            count += 1
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if count == 1:
                return self.connection.shutdown(2)
            if count == 2:
                self.send_response(503)
                self.send_header("Retry-After", "1")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            worker = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
            worker.request("PUT", self.path, body, {name: self.headers[name] for name in ["Authorization", "Content-Type"]})
            answer = worker.getresponse()
            text = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        def log_message(self, *words): pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Proxy)
    print(server.server_port, flush=True)
    server.serve_forever()
    """

  init() throws {
    spool = try TestSpool()
    scratch = try ScratchDirectory()
    let tokens = try scratch.file("tokens", Array("kiosk 0123456789abcdef\n".utf8))
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: tokens)
    ingest = try RunningIngest(["--spool", spool.path, "--ingest-tokens", tokens])
    proxy = Process()
    proxy.executableURL = URL(fileURLWithPath: Tool.python)
    proxy.arguments = ["-c", Self.script, "\(ingest.port)"]
    let output = Pipe()
    proxy.standardOutput = output
    try proxy.run()
    let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    port = try #require(Int(line.filter(\.isNumber)))
  }

  private func expectSent(by program: String, _ arguments: [String]) throws {
    defer {
      kill(proxy.processIdentifier, SIGKILL)
      proxy.waitUntilExit()
    }
    let file = try scratch.file("batch", Array(IngestTests.batch("film")))
    let words = arguments + [file, "http://127.0.0.1:\(port)/v1/batches/film.tar"]
    for status in ["201", "200"] {
      let sent = try Tool.run(program, words, environment: ["INGEST_TOKEN": "0123456789abcdef"])
      #expect(sent.status == 0 && sent.text.hasPrefix(status), "\(sent.text) \(sent.errors)")
    }
    try spool.waitUntil("published") { try spool.names("output/film").contains("session.json") }
    // A refusal that no repetition mends ends the client.
    let refused = try Tool.run(program, words, environment: ["INGEST_TOKEN": "wrong"])
    #expect(refused.status != 0 && (refused.text + refused.errors).contains("401"), "\(refused.errors)")
  }

  private static func example(_ name: String) -> String {
    Fixture.root.appendingPathComponent("examples/ingest/\(name)").path
  }

  @Test func pythonClientSends() throws { try expectSent(by: Tool.python, [Self.example("send_batch.py")]) }

  @Test func curlClientSends() throws { try expectSent(by: "sh", [Self.example("send-batch")]) }

  @Test func swiftClientSends() throws {
    let program = scratch.path("send")
    let source = Self.example("SendBatch.swift")
    let compiled = try Tool.compile(["-parse-as-library", "-swift-version", "6", source, "-o", program])
    try #require(compiled.status == 0, "\(compiled.errors)")
    try expectSent(by: program, [])
  }

  @Test(.enabled(if: hasKotlin, "kotlinc is not installed; make lint-examples installs it"))
  func kotlinClientSends() throws {
    let archive = scratch.path("send.jar")
    try Tool.output("kotlinc", [Self.example("SendBatch.kt"), "-include-runtime", "-d", archive])
    try expectSent(by: "java", ["-jar", archive])
  }
}
