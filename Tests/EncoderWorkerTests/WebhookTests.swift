import Foundation
import SegmentEncoder
import TestSupport
import Testing

@testable import FileSystem
@testable import Notifying
@testable import Remote
@testable import SegmentEncoder
@testable import encoder_worker

@Suite struct WebhookTests {
  /// The vector of the test suites of the Standard Webhooks libraries.
  @Test func signatureIsThatOfTheSpecification() throws {
    let signer = try #require(WebhookSigner(secret: Array("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n".utf8)))
    let signature = signer.signature(
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timeS: 1_614_265_330, body: Array(#"{"test": 2432232314}"#.utf8))
    #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
  }

  @Test func secretWithoutPrefixIsUsedAsItIs() throws {
    let raw = try #require(WebhookSigner(secret: Array("abcdef\r\n".utf8)))
    let encoded = try #require(WebhookSigner(secret: Array("whsec_YWJjZGVm".utf8)))
    #expect(raw.signature(id: "a", timeS: 1, body: []) == encoded.signature(id: "a", timeS: 1, body: []))
    for bad in ["", "\n", "whsec_", "whsec_!!!!", "whsec_A"] { #expect(WebhookSigner(secret: Array(bad.utf8)) == nil) }
  }

  @Test func secretThatOthersMayReadIsRefused() throws {
    let scratch = try ScratchDirectory()
    let path = try scratch.file("secret", Array("hush hush".utf8))
    for (mode, isUsed) in [(0o600, true), (0o440, true), (0o644, false), (0o602, false)] {
      chmod(path, mode_t(mode))
      if isUsed {
        _ = try WebhookSigner(file: path)
      } else {
        let failure = #expect(throws: Failure.self) { try WebhookSigner(file: path) }
        #expect(failure.map { "\($0)".contains("chmod o-rw") && !"\($0)".contains("hush") } == true)
      }
    }
    #expect(throws: Failure.self) { try WebhookSigner(file: scratch.path) }
    #expect(throws: Failure.self) { try WebhookSigner(file: "/dev/null") }
  }

  @Test(arguments: [
    "http://h", "https://hooks.example/a/b?token=c", "HTTP://127.0.0.1:8080", "http://[::1]:80/x", "http://[::1]",
  ]) func addressIsAccepted(text: String) throws {
    try HTTPAddress(argument: text).validate("--notify")
  }

  @Test(arguments: [
    "", "h", "ftp://h", "http://", "http:///x", "http://:80", "http://h:0", "http://h:65536", "http://h:+1",
    "http://h:x",
    "https://user@h/", "https://user:hush@h/", "http://h/a b", "http://h/a\r\nX: y", "http://h/é", "http://h/#a",
    "file:///etc/passwd", "http://h/" + String(repeating: "a", count: 2_048),
  ]) func invalidAddressIsRefusedWithoutRepeatingIt(text: String) {
    let url = HTTPAddress(argument: text)
    let failure = #expect(throws: (any Error).self) { try url.validate("--notify") }
    #expect(failure.map { "\($0)".contains("hush") } == false)
  }

  @Test func nameOfAnAddressHasNoPathAndNoQuery() {
    #expect(
      HTTPAddress(argument: "https://hooks.example:8443/secret?token=secret").name == "https://hooks.example:8443")
    #expect(HTTPAddress(argument: "https://hooks.example?token=secret").name == "https://hooks.example")
  }

  @Test func statusDecidesWhetherAnEventIsRepeated() {
    func delivery(_ status: Int, _ headers: [String: String] = [:], _ body: String = "") -> Delivery {
      WebhookReceiver.delivery(status, headers, Array(body.utf8), nowMs: 1_767_859_512_340)
    }
    for status in [200, 201, 204, 299] { #expect(delivery(status) == .accepted) }
    for status in [0, 199, 408, 429, 500, 503, 599, 999] {
      guard case .failed(_, nil) = delivery(status) else {
        Issue.record("\(status)")
        continue
      }
    }
    for status in [300, 301, 308, 400, 401, 404, 410, 422, 499] {
      guard case .refused(let cause) = delivery(status, ["location": "https://other/"], "why\u{1B}\nnext") else {
        Issue.record("\(status)")
        continue
      }
      #expect(cause.contains("\(status)") && !cause.contains("\u{1B}") && !cause.contains("next"))
      #expect(cause.contains("https://other/") == (status < 400))
    }
    func pauseS(_ text: String) -> Int? {
      guard case .failed(_, let pauseS) = delivery(503, ["retry-after": text]) else { return nil }
      return pauseS
    }
    #expect(pauseS("120") == 120 && pauseS("-5") == 0 && pauseS("soon") == nil && pauseS("99999999999999999999") == nil)
    #expect(pauseS("Thu, 08 Jan 2026 08:06:00 GMT") == 48 && pauseS("Thu, 08 Jan 2026 08:00:00 GMT") == 0)
  }

  @Test func pauseGrowsToAMinuteWithJitterOfAHalf() {
    let whole = (1...12).map { BackOff.pauseMs(failures: $0, jitter: 1) }
    #expect(whole == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000, 60_000])
    #expect((1...12).map { BackOff.pauseMs(failures: $0, jitter: 0) } == whole.map { $0 / 2 })
    #expect(BackOff.pauseMs(failures: 0, jitter: 1) == 500 && BackOff.pauseMs(failures: .max, jitter: 1) == 60_000)
  }
}
