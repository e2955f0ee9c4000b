import Testing

@testable import Remote

/// Tests replies of a Redis that lies.
@Suite struct RedisReplyTests {
  @Test(arguments: [(Int.min, 0), (-1, 0), (0, 0), (7, 7), (1 << 40, 1 << 40), (Int.max, 1 << 40)])
  func countIsClamped(value: Int, count: Int) {
    #expect(RedisReply.integer(value).count == count)
  }

  @Test func otherReplyIsNoCount() {
    #expect(RedisReply.nothing.count == nil && RedisReply.bytes(Array("7".utf8)).count == nil)
  }

  @Test func textOfErrorIsShortAndOneLine() {
    let text = RedisReply.line(Array("ERR a\nb ".utf8) + Array(repeating: 120, count: 1 << 20))
    #expect(text.hasPrefix("ERR a\\nb x") && text.utf8.count == 501)
  }

  @Test func idIsTwoNumbers() {
    for text in ["1767859512340-0", "18446744073709551615-18446744073709551615"] {
      #expect(RedisReply.bytes(Array(text.utf8)).id == text)
    }
    let long = "1-" + String(repeating: "0", count: 99)
    for text in ["", "1", "-", "1-", "1-2-3", "+1-2", "x-1", "1-18446744073709551616", long] {
      #expect(RedisReply.bytes(Array(text.utf8)).id == nil)
    }
  }
}
