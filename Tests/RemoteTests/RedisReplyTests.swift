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
}
