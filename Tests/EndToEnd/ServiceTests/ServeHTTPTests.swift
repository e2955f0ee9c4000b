import Foundation
import TestSupport
import Testing

/// HTTP as `serve` speaks it: byte ranges, paths and hosts that it refuses, and clients that are slow, leave, or send no
/// HTTP.
@Suite struct ServeHTTPTests: ServingSuite {
  let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test func byteRangesAreServedAsRequested() throws {
    let (server, sessions) = try serve("exact-1fps")
    let name = sessions[0].manifests[0].file
    let bytes = try Data(contentsOf: URL(fileURLWithPath: sessions[0].path + "/" + name))
    for path in ["/sessions/exact-1fps/\(name)", "/sessions/exact-1fps/session.mp4"] {
      let whole = try server.get(path)
      let all = whole.body
      let tag = try #require(whole.headers["etag"])
      #expect(whole.status == 200 && whole.headers["accept-ranges"] == "bytes")
      if path.hasSuffix(name) { #expect(all == bytes) }
      let parts: [(String, Range<Int>)] = [
        ("bytes=0-0", 0..<1), ("bytes=5-", 5..<all.count), ("bytes=-7", all.count - 7..<all.count),
        ("bytes=10-99999999999999999999", 10..<all.count), ("bytes=-99999999", 0..<all.count),
      ]
      for (range, part) in parts {
        let reply = try server.get(path, ["Range": range, "If-Range": tag])
        #expect(reply.status == 206 && reply.body == all[part], "\(range)")
        #expect(
          reply.headers["content-range"] == "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(all.count)", "\(range)")
      }
      for range in ["bytes=99999999-", "bytes=-0"] {
        let reply = try server.get(path, ["Range": range])
        #expect(reply.status == 416 && reply.headers["content-range"] == "bytes */\(all.count)", "\(range)")
      }
      for range in ["bytes=5-2", "bytes=0-1,4-5", "bytes=a-b", "lines=1-2", "bytes=-", "bytes=1-2x"] {
        let reply = try server.get(path, ["Range": range])
        #expect(reply.status == 200 && reply.body == all, "\(range)")
      }
      #expect(try server.get(path, ["Range": "bytes=0-1", "If-Range": "\"other\""]).body == all)
      for tags in [tag, "\"other\", \(tag)", "W/\(tag)", "*"] {
        let reply = try server.get(path, ["If-None-Match": tags])
        #expect(reply.status == 304 && reply.body.isEmpty && reply.headers["etag"] == tag)
      }
      let head = try server.get(path, method: "HEAD")
      #expect(head.status == 200 && head.body.isEmpty && head.headers["content-length"] == "\(all.count)")
    }
  }

  /// A page that names a file that the program does not have stays empty.
  @Test func pagesAndAllThatTheyLoadAreServedAndNothingElseMayRun() throws {
    let (server, _) = try serve("exact-1fps")
    var loaded: Set<String> = []
    var waiting = ["/", "/sessions/exact-1fps/", "/compare?a=exact-1fps&b=exact-1fps"]
    while let path = waiting.popLast() {
      let reply = try server.get(path)
      #expect(reply.status == 200, "\(path)")
      let policy = reply.headers["content-security-policy"] ?? ""
      #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self';"), "\(path): \(policy)")
      let names = reply.text.matches(of: /(?:from '\.|"\/assets)\/([a-z.]+)['"]/).map { "/assets/\($0.1)" }
      for name in names where loaded.insert(name).inserted { waiting.append(name) }
    }
    #expect(loaded.count > 30)
    #expect(try server.get("/assets/compare.html").status == 404)
  }

  @Test func noPathLeadsOutOfTheOutput() throws {
    let (server, sessions) = try serve("exact-1fps")
    try scratch.file("secret", Array("secret".utf8))
    try scratch.file("output/exact-1fps/notes.txt", Array("secret".utf8))
    for name in ["segment-1767859599999.mp4", "segment-1767859599999.json"] {
      try FileManager.default.createSymbolicLink(
        atPath: sessions[0].path + "/" + name, withDestinationPath: scratch.path("secret"))
    }
    #expect(try Tool.run("mkfifo", [sessions[0].path + "/segment-1767859588888.mp4"]).status == 0)
    let paths = [
      "/../secret", "/sessions/../secret", "/sessions/..%2fsecret", "/sessions/%2e%2e/secret",
      "/sessions/exact-1fps/../../secret", "/sessions/exact-1fps/..%2f..%2fsecret", "/sessions//secret",
      "/sessions/exact-1fps/notes.txt", "/sessions/exact-1fps/segment-1767859599999.mp4",
      "/sessions/exact-1fps/segment-1767859588888.mp4", "/sessions/exact-1fps/segment-1767859599999.json",
      "/sessions/exact-1fps//etc/passwd", "/assets/../secret", "/assets/%2e%2e/secret", "/assets/list.html",
      "/sessions/.staging/", "//etc/passwd", "/sessions/exact-1fps%00/", "/sessions/exact-1fps/session.json%00.txt",
      "/" + String(repeating: "a/", count: 4_000),
    ]
    for path in paths {
      let reply = try server.get(path)
      #expect(!reply.text.contains("secret") || reply.status == 404, "\(path)")
      #expect([404, 414, 400].contains(reply.status), "\(path): \(reply.status)")
    }
    #expect(try server.get("/", method: "POST").status == 405)
    #expect(try server.get("/", method: "DELETE").status == 405)
  }

  @Test func requestsFromOtherSitesAreRefused() throws {
    let (server, _) = try serve("exact-1fps")
    // A host name that resolves to this server.
    #expect(try server.get("/sessions.json", ["Host": "evil.example:80"]).status == 421)
    #expect(try server.get("/sessions.json", ["Host": "LOCALHOST:\(server.port)"]).status == 200)
    let headers = try server.get("/sessions.json").headers
    #expect(headers["cross-origin-resource-policy"] == "same-origin" && headers["access-control-allow-origin"] == nil)
    #expect(headers["content-security-policy"]?.contains("default-src 'none'") == true)
    #expect(headers["x-content-type-options"] == "nosniff")
  }

  /// DNS rebinding: another site's name may resolve to this server.
  @Test func aServerOnAllAddressesRefusesUnknownHostNames() throws {
    _ = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    let server = try RunningServer(
      ["serve", scratch.path("output"), "--host", "Replay.Example"], listening: "0.0.0.0:0")
    let own = String(decoding: try Tool.output("uname", ["-n"]), as: UTF8.self).trimmingCharacters(in: .newlines)
    for host in ["127.0.0.1:\(server.port)", "10.1.2.3", "[fe80::1]:80", "localhost", own, "replay.example:443"] {
      #expect(try server.get("/sessions.json", ["Host": host]).status == 200, "\(host)")
    }
    for host in ["evil.example", "10.1.2.3.evil.example", "[evil]", "", "127.1"] {
      #expect(try server.get("/sessions.json", ["Host": host]).status == 421, "\(host)")
    }
  }

  /// Request smuggling (RFC 9112, 11.2).
  @Test func anAmbiguousRequestIsRefusedAndItsConnectionClosed() throws {
    let (server, _) = try serve("exact-1fps")
    for fields in [
      "Host: 127.0.0.1\r\nHost: localhost\r\n", "Host: 127.0.0.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n",
      "Host: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
      "Host: 127.0.0.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ] {
      // The server has closed the connection and does not answer the second request.
      let reply = try server.exchange(
        "GET /healthz HTTP/1.1\r\n\(fields)\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
      #expect(reply.status == 400, "\(fields)")
      #expect(!reply.text.contains("HTTP/1.1 200"), "\(fields)")
    }
  }

  /// More connections than the limit; each sends a header line now and then and never finishes its request.
  @Test func slowConnectionsDoNotBlockOtherClients() throws {
    let (server, _) = try serve("exact-1fps")
    var slow = try (0..<512).map { _ in try server.connection() }
    defer { for file in slow { close(file) } }
    for round in 0..<Extent.of(12, full: 60) {
      #expect(try server.get("/healthz", timeoutS: Extent.of(60, full: 2)).status == 200, "\(round)")
      for index in slow.indices {
        let line = "X-\(round): slow\r\n"
        if send(slow[index], line, line.utf8.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)) < 0 {
          close(slow[index])
          slow[index] = try server.connection()
        }
      }
      sleep(1)
    }
    #expect(server.stop() == 0)
  }

  @Test func fileThatShrinksDuringTheResponseEndsTheConnection() throws {
    let (server, sessions) = try serve("exact-1fps")
    let name = "segment-1767859599999.mp4"
    let file = sessions[0].path + "/" + name
    #expect(FileManager.default.createFile(atPath: file, contents: Data(count: 64 << 20)))
    let script = """
      import os, socket, sys
      s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
      s.settimeout(120)
      s.send(b'GET /sessions/exact-1fps/\(name) HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')
      got = len(s.recv(1000))
      os.truncate(sys.argv[2], 10)
      while more := len(s.recv(1 << 20)):
          got += more
      print(got)
      """
    let result = try Tool.run(Tool.python, ["-c", script, "\(server.port)", file])
    let got = try #require(Int(result.text.filter(\.isNumber)), "\(result.errors)")
    #expect(got > 0 && got < 64 << 20)
  }

  @Test func clientThatLeavesDuringAFilmLeavesNoFile() throws {
    let (server, _) = try serve("exact-1fps")
    let reply = try server.get("/sessions/exact-1fps/session.mp4")
    let tag = try #require(reply.headers["etag"])
    #expect(try server.get("/sessions/exact-1fps/session.mp4", ["If-None-Match": tag]).status == 304)
    #expect(server.stop() == 0)
  }

  @Test func malformedRequestsAreRefusedAndTheServerContinues() throws {
    let (server, _) = try serve("exact-1fps")
    for text in [
      "\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
      "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + String(repeating: "x", count: 100_000) + "\r\n\r\n",
    ] {
      // The server responds with an error or closes the connection.
      if let reply = try? server.exchange(text, timeoutS: 1) { #expect(reply.status >= 400, "\(text.prefix(60))") }
    }
    #expect(try server.get("/healthz").text == "ok\n")
  }
}
