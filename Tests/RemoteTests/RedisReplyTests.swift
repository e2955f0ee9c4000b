import Testing
import WorkQueues

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

  private static func text(_ text: String) -> RedisReply { .bytes(Array(text.utf8)) }

  @Test func digestIsASHA1() {
    let digest = String(repeating: "0123456789", count: 3) + "abcdefabcd"
    #expect(Self.text(digest).digest == digest)
    for other in [String(digest.dropLast()), digest + "0", digest.uppercased(), "../" + digest.dropFirst(3), ""] {
      #expect(Self.text(other).digest == nil)
    }
    #expect(RedisReply.integer(1).digest == nil)
  }

  @Test func groupIsAShortText() {
    #expect(Self.text("1767859512.34 host~1~a1").group == "1767859512.34 host~1~a1")
    #expect(Self.text("").group == nil && Self.text(String(repeating: "x", count: 501)).group == nil)
  }

  private static func entry(_ id: String, _ name: String, _ more: RedisReply...) -> RedisReply {
    .list([text(id), text(name), .integer(.max), .integer(.min)] + more)
  }

  @Test func entryHasAnIDANameAndClampedCounts() throws {
    let entry = try #require(Self.entry("1-0", "a", .nothing, Self.text("00-no")).entry)
    var wanted = Claim(id: "1-0", name: "a", attempt: 1 << 40, failures: 0)
    wanted.arrivedMs = 1
    #expect(entry.claim == wanted && entry.fault == nil)
    #expect(Self.entry("\(Int64.max)-0", "a").entry?.claim.arrivedMs == nil)
    #expect(try #require(Self.entry("1-0", "").entry).fault == "is missing or empty")
    #expect(Self.entry("one", "a").entry == nil && RedisReply.list([Self.text("1-0"), Self.text("a")]).entry == nil)
    #expect(RedisReply.list([Self.text("1-0"), .integer(1), .integer(1), .integer(1)]).entry == nil)
  }

  @Test func nextIsAnEntryOrNothingOrDuplicates() {
    #expect(RedisReply.nothing.next == NextEntry.none && RedisReply.integer(0).next == .duplicates)
    for other in [RedisReply.integer(1), .unknown, Self.text("a"), .list([]), .refusal("ERR")] {
      #expect(other.next == nil)
    }
  }

  @Test func moreEntriesThanAskedForAreNoReply() {
    let entries = (1...3).map { Self.entry("\($0)-0", "a") }
    #expect(RedisReply.list(entries).entries(atMost: 3)?.count == 3)
    #expect(RedisReply.list(entries).entries(atMost: 2) == nil)
    #expect(RedisReply.list(entries + [.nothing]).entries(atMost: 9) == nil)
  }

  @Test func lostEntriesAreOnesThatWereAskedFor() {
    let reply = RedisReply.list([Self.text("1-0")])
    #expect(reply.lost(of: ["1-0", "2-0"]) == ["1-0"] && RedisReply.list([]).lost(of: []) == [])
    #expect(reply.lost(of: ["2-0"]) == nil && reply.lost(of: []) == nil && RedisReply.nothing.lost(of: ["1-0"]) == nil)
  }

  @Test func countsOfHeldEntriesAreTwo() {
    #expect(RedisReply.list([.integer(5), .integer(.min)]).heldCounts.map { [$0.all, $0.own] } == [5, 0])
    #expect(RedisReply.list([.integer(5)]).heldCounts == nil && RedisReply.integer(5).heldCounts == nil)
  }

  @Test func wordsOfACommandAreCountedInBytes() {
    #expect(RedisWire.command(["ECHO", "ü\r\n"]) == Array("*2\r\n$4\r\nECHO\r\n$4\r\nü\r\n\r\n".utf8))
  }
}
