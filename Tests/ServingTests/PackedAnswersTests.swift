import Foundation
import TestSupport
import Testing

@testable import FrameBatches
@testable import Serving

/// Answers that a client takes packed.
@Suite struct PackedAnswersTests {
  private let answers = PackedAnswers()
  private let text = Array((0..<2_000).map { "{\"startMs\":\($0)}" }.joined(separator: ",").utf8)

  private func answer(
    _ reply: HTTPResponse, _ headers: [String: String], of session: SessionID? = SessionID("walk")
  ) throws -> HTTPResponse {
    let request = HTTPRequest(method: "GET", path: "/", header: { headers[$0] })
    return try answers.answer(reply, to: request, of: session).answering(request)
  }

  private func isPacked(_ reply: HTTPResponse) -> Bool {
    reply.headers.contains { $0.name == "Content-Encoding" && $0.value == "gzip" }
  }

  @Test func packedTextUnpacksToItself() throws {
    let scratch = try ScratchDirectory()
    for session in [SessionID("walk"), nil] {
      let reply = try answer(HTTPResponse(.json, text, tag: "t"), ["Accept-Encoding": "br, gzip;q=0.8"], of: session)
      guard case .bytes(let bytes) = reply.body else { throw CancellationError() }
      #expect(isPacked(reply) && bytes.count < text.count / 4)
      #expect(reply.headers.contains { $0.name == "Vary" && $0.value == "Accept-Encoding" })
      let file = try scratch.file("x.gz", bytes)
      #expect(try [UInt8](Tool.output("gzip", ["-dc", file])) == text)
    }
  }

  @Test func onlyWholeTextsOfSomeSizeArePacked() throws {
    let gzip = ["Accept-Encoding": "gzip"]
    #expect(try isPacked(answer(HTTPResponse(.playlist, text, tag: "t"), gzip)))
    for kind in [HTTPResponse.Kind.jpeg, .fragment, .mp4] {
      #expect(try !isPacked(answer(HTTPResponse(kind, text, tag: "t"), gzip)))
    }
    #expect(try !isPacked(answer(HTTPResponse(.json, Array(text[..<1_000]), tag: "t"), gzip)))
    #expect(try !isPacked(answer(HTTPResponse(.json, text, status: 500), gzip)))
    for accepted in ["", "gzip;q=0", "gzip; q=0.0", "br", "notgzip"] {
      let reply = try answer(HTTPResponse(.json, text, tag: "t"), ["Accept-Encoding": accepted])
      // A cache on the way must know that others get another form.
      #expect(!isPacked(reply) && reply.headers.contains { $0.name == "Vary" }, "\(accepted)")
    }
    let part = try answer(HTTPResponse(.json, text, tag: "t"), ["Accept-Encoding": "gzip", "Range": "bytes=0-9"])
    #expect(part.status == 206 && part.body.count == 10 && !isPacked(part))
  }

  @Test func eachFormHasItsOwnTag() throws {
    func reply(_ tag: String, _ encoding: String) throws -> (status: Int, tag: String?) {
      let reply = try answer(HTTPResponse(.json, text, tag: "t"), ["If-None-Match": tag, "Accept-Encoding": encoding])
      return (reply.status, reply.headers.first { $0.name == "ETag" }?.value)
    }
    #expect(try reply("\"x\"", "gzip") == (200, "\"t-gzip\"") && reply("\"x\"", "") == (200, "\"t\""))
    #expect(try reply("\"t-gzip\"", "gzip") == (304, "\"t-gzip\"") && reply("\"t\"", "") == (304, "\"t\""))
    #expect(try reply("\"t\"", "gzip") == (304, "\"t\""))
  }

  /// Nothing of a deleted session stays in memory.
  @Test func packedAnswersOfASessionAreForgotten() throws {
    let session = try #require(SessionID("walk"))
    _ = try answer(HTTPResponse(.json, text, tag: "t"), ["Accept-Encoding": "gzip"])
    #expect(answers.sessions == [session])
    answers.remove([session])
    #expect(answers.sessions.isEmpty)
  }
}
