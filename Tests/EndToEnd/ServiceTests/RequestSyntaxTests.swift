import Foundation
import TestSupport
import Testing

/// Requests that a proxy may read in another way than the server (RFC 9112, 11.2).
@Suite struct RequestSyntaxTests {
  private let server: RunningServer
  private let scratch: ScratchDirectory

  init() throws {
    scratch = try ScratchDirectory()
    _ = try EncoderWorker.encode(Fixture("exact-1fps"), into: scratch)
    server = try RunningServer(["serve", scratch.path("output")])
  }

  /// The body is a request, which a server that overlooks the body answers.
  private func expectRefusal(_ head: String, with statuses: [Int] = [400]) throws {
    let hidden = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    let reply = try server.exchange("\(head)\r\n\(hidden)")
    #expect(statuses.contains(reply.status), "\(head.debugDescription): \(reply.status)")
    #expect(!reply.text.contains("encoder_worker_http_requests_total"), "\(head.debugDescription)")
  }

  @Test(arguments: [
    // Folded.
    "Transfer-Encoding:\r\n chunked", "Transfer-Encoding:\r\n\tchunked", "Transfer-Encoding: x\r\n chunked",
    "Content-Length:\r\n 5", "Content-Length: 5\r\n 5", "X: a\r\n b", "X: a\r\n \t", "X: a\r\n  b\r\n c",
    "X:\n chunked",
    // White space in or before the name.
    "Transfer-Encoding : chunked", "Content-Length\t: 5", "X Content-Length: 5", ": 5",
    // Characters that no header has.
    "X: a\rContent-Length: 5", "X\u{1}: 5", "X: \u{7F}", "X: \u{8}", "(X): 5",
    "X: a\0b", "Content-Length: 0\0 5", ": 5\r\nContent-Length: 5", ":\r\nContent-Length: 5",
    // More than one length.
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Content-Length: 5\r\nContent-Length: 5",
    "Content-Length: 5\r\ncontent-length: 6",
    // Two values of a header that has one.
    "Authorization: Bearer a\r\nAuthorization: Bearer b", "Content-Type: image/png\r\nContent-type: text/html",
    "Idempotency-Key: a\r\nIdempotency-Key: a",
    // Lengths of no server or of another one.
    "Content-Length: +5", "Content-Length: 5, 5", "Content-Length: 0x5", "Content-Length:", "Content-Length: -5",
  ])
  func ambiguousHeaderIsRefusedAndItsConnectionClosed(field: String) throws {
    try expectRefusal("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\(field)\r\n")
    try expectRefusal("POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\(field)\r\nX-Last: 1\r\n")
  }

  /// libmicrohttpd 1.0 itself refuses these with 501, and older versions leave them to `serve`.
  @Test(arguments: ["gzip, chunked", "xchunked", "identity", "", "identity\r\nTransfer-Encoding: chunked"])
  func unknownCodingOfABodyIsRefused(coding: String) throws {
    let field = "Transfer-Encoding: \(coding)"
    try expectRefusal("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\(field)\r\n", with: [400, 501])
    try expectRefusal("POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\(field)\r\nX-Last: 1\r\n", with: [400, 501])
  }

  @Test func argumentThatComesTwiceIsRefused() throws {
    for query in ["t=1&t=1", "t=1&a&t=2", "a&a", (0..<65).map { "a\($0)" }.joined(separator: "&")] {
      try expectRefusal("GET /healthz?\(query) HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n")
    }
    #expect(try server.get("/healthz?t=1&u=1").status == 200)
  }

  @Test func headersOfOtherVersionsAndPlacesAreRefused() throws {
    try expectRefusal("GET /healthz HTTP/1.1\r\n X: y\r\nHost: 127.0.0.1\r\n")
    try expectRefusal("GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n")
  }

  @Test func requestWithABodyIsTheLastOfItsConnection() throws {
    let next = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for body in ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"] {
      let reply = try server.exchange("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\(body)\(next)")
      #expect(reply.status == 200 && reply.headers["connection"]?.lowercased() == "close", "\(body)")
      #expect(!reply.text.contains("encoder_worker_http_requests_total"), "\(body)")
    }
  }

  /// Headers that are long, empty, or come in pieces are on one line all the same.
  @Test func unusualHeadersOnOneLineAreAccepted() throws {
    let long = String(repeating: "a, ", count: 7_000)
    let head =
      "GET /healthz HTTP/1.1\r\nHost:127.0.0.1\r\nX-Empty:\r\nX-Space:  \t \r\nX_1.~!: \u{E9}\r\nX-Long:   \(long)\r\n"
      + "If-None-Match: \"a\" \r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    #expect(try server.exchange(head).text == "ok\n")
    let file = try server.connection()
    defer { close(file) }
    let bytes = Array(head.utf8)
    for start in stride(from: 0, to: bytes.count, by: 97) {
      let part = Array(bytes[start..<min(start + 97, bytes.count)])
      #expect(send(file, part, part.count, Int32(MSG_NOSIGNAL)) == part.count)
      usleep(1_000)
    }
    let reply = try FileHandle(fileDescriptor: file, closeOnDealloc: false).readToEnd() ?? Data()
    #expect(String(decoding: reply, as: UTF8.self).hasPrefix("HTTP/1.1 200 "))
  }

  @Test(arguments: [
    "/sessions/..%2fsecret", "/sessions/..%2Fsecret", "/sessions%2Fexact-1fps/", "/%2f/", "/sessions/exact-1fps%5c",
    "/sessions/exact-1fps/%5Csession.json", "/sessions/%2e%2e/secret", "/sessions/.%2E/secret",
    "/sessions/exact-1fps%00/", "/sessions/%2e/secret", "/sessions/exact-1fps/%2E%2e", "/sessions/%2E./",
    "/sessions/%61%2f", "/sessions/a%252fb/",
    "/assets/%2e%2e/secret", "/sessions/exact-1fps/session.json%00.txt",
  ])
  func encodedSeparatorInAPathIsRefused(path: String) throws {
    let reply = try server.get(path)
    #expect(reply.status == 400 && reply.text.contains("%2F"), "\(path): \(reply.status)")
  }

  @Test func encodedDotInASessionsNameIsDecoded() throws {
    let spool = try TestSpool()
    try spool.addSmall("plain", startMs: 1_767_859_512_340)
    let encoded = try EncoderWorker.run(
      "encode", spool.path + "/incoming/plain", "--output", scratch.path("output"), "--session", "a.b")
    #expect(encoded.status == 0, "\(encoded.errors)")
    for path in ["/sessions/a%2Eb/", "/sessions/a%2eb/timeline.json", "/sessions/a%2Eb/session%2Emp4"] {
      #expect(try server.get(path).status == 200, "\(path)")
    }
    #expect(try server.get("/sessions/a%2Eb").headers["location"] == "/sessions/a.b/")
  }

  @Test func otherEncodedCharactersAreDecoded() throws {
    #expect(try server.get("/sessions/exact%2D1fps/session%2Ejson").status == 200)
    #expect(try server.get("/sessions/exact-1fps%2E/").status == 200)
    #expect(try server.get("/sessions/exact%2D1fps/session.json").status == 200)
    #expect(try server.get("/sessions/exact-1fps/frame.jpg?t=%2B0%2e5s").status == 200)
    #expect(try server.get("/sessions/exact-1fps/frame.jpg?t=%2F").status == 400)
  }
}
