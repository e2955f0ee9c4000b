import FileSystem
import Foundation
import FrameBatches
import TestSupport
import Testing

@testable import Ingesting

/// Digests, tokens and keys of requests.
@Suite struct IngestHeaderTests {
  private let scratch: ScratchDirectory

  init() throws { scratch = try ScratchDirectory() }

  @Test func digestIsReadAmongOthers() throws {
    // The SHA-256 of {"hello": "world"} in RFC 9530, appendix D.
    let text = "X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE="
    let hex = "5f8f04f6a3a892aaabbddb6cf273894493773960d4a325b105fee46eef4304f1"
    for header in ["sha-256=:\(text):", "md5=:AAAA:,\tsha-256=:\(text):", "sha-256=:\(text): , sha-512=:AAAA:"] {
      #expect(try ContentDigest.sha256(in: header) == hex, "\(header)")
    }
    #expect(try ContentDigest.sha256(in: nil) == nil && ContentDigest.sha256(in: "sha-512=:AAAA:") == nil)
    for header in [
      "", "sha-256", "sha-256=", "sha-256=:\(text)", "sha-256=\(text)", "sha-256=:%%%:", "sha-256=:AAAA:",
      "sha-256=:\(text):,", "SHA-256=:\(text):", "sha-256=:\(text):, sha-256=:\(text):", "=:\(text):", "a b=:AAAA:",
    ] {
      #expect(throws: ProblemDetails.self, "\(header)") { try ContentDigest.sha256(in: header) }
    }
  }

  private func tokens(_ text: String, mode: Int = 0o640) throws -> IngestTokens {
    let path = try scratch.file("tokens", Array(text.utf8))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    return try IngestTokens(file: path)
  }

  @Test func tokenNamesItsProducer() throws {
    let tokens = try tokens("# a comment\n\n one  0123456789abcdef\r\ntwo\t0123456789abcdeF two-\n")
    #expect(tokens.producer(withToken: "0123456789abcdef") == Producer(name: "one", prefix: ""))
    let two = try #require(tokens.producer(withToken: "0123456789abcdeF"))
    #expect(two == Producer(name: "two", prefix: "two-"))
    #expect(try two.mayWrite(to: #require(SessionID("two-1"))) && !two.mayWrite(to: #require(SessionID("two"))))
    for token in ["", "0123456789abcde", "0123456789abcdef0", "one", String(repeating: "a", count: 100_000)] {
      #expect(tokens.producer(withToken: token) == nil)
    }
  }

  @Test(arguments: [
    "", "# nothing\n", "one\n", "one short\n", "one 0123456789abcdef a b\n", "one 0123456789abcdef .x\n",
    "one 0123456789abcdef\none 0123456789abcdeg\n", "one 0123456789abcdef\ntwo 0123456789abcdef\n",
    "one 0123456789abcde\u{E9}\n",
  ])
  func unusableFileIsRefusedWithoutShowingItsTokens(text: String) throws {
    let error = #expect(throws: Failure.self) { try tokens(text) }
    #expect(error.map { "\($0)".contains("0123") } == false)
  }

  @Test func fileThatOthersReadIsRefusedWithAdvice() throws {
    let error = #expect(throws: Failure.self) { try tokens("one 0123456789abcdef\n", mode: 0o644) }
    #expect(error.map { "\($0)".contains("chmod o-rw") } == true)
  }

  @Test func keyStandsForOneContentOfOneProducer() throws {
    let keys = IdempotencyKeys()
    let producer = Producer(name: "one", prefix: "")
    try keys.require("k", of: producer, for: "a")
    try keys.require("k", of: producer, for: "a")
    try keys.require("k", of: nil, for: "b")
    try keys.require(nil, of: producer, for: "b")
    #expect(throws: ProblemDetails.self) { try keys.require("k", of: producer, for: "b") }
    #expect(throws: ProblemDetails.self) { try keys.require("", of: producer, for: "a") }
  }

  @Test func lengthOfKeyIsCountedInBytes() throws {
    let keys = IdempotencyKeys()
    try keys.require(String(repeating: "k", count: 200), of: nil, for: "a")
    // One character of 201 bytes.
    #expect(throws: ProblemDetails.self) {
      try keys.require("k" + String(repeating: "\u{301}", count: 100), of: nil, for: "a")
    }
  }
}
