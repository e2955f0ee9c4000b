import Testing

@testable import FrameBatches

/// The pages that a recorder names.
@Suite struct PageViewTests {
  @Test(arguments: [
    ("https://example.org/cart?user=7#top", "https://example.org/cart"), ("https://example.org", "https://example.org"),
    ("https://me:secret@example.org/a@b", "https://example.org/a@b"),
    ("https://example.org/a#b?c", "https://example.org/a"),
    ("https://example.org/cart;jsessionid=9A7F?x", "https://example.org/cart"), ("/page?\u{301}token=x", "/page"),
    ("data:text/html,<p>secret", "data:"), ("JavaScript:alert(1)", "javascript:"),
    ("CheckoutActivity", "CheckoutActivity"), ("a\nb", "a\\nb"), ("?q=1", nil), ("", nil),
  ])
  func secretsAreLeftOut(address: String, name: String?) {
    #expect(PageView(timeMs: 1, address: address)?.name == name)
  }

  @Test func longNamesAreShortened() {
    let long = PageView(timeMs: 1, address: "https://example.org/" + String(repeating: "ä", count: 500))
    #expect(long.map { $0.name.utf8.count <= 200 } == true)
  }

  @Test func metaEventsOfRRWebNamePages() throws {
    func meta(_ second: Int64, _ href: String) -> String {
      #"{"type":4,"timestamp":\#(RRWebTests.start + 1_000 * second),"data":{"href":"\#(href)","width":1,"height":1}}"#
    }
    let events = [
      meta(0, "https://a.example/one?token=1"), RRWebTests.snapshot(0), meta(2, "https://a.example/one?token=2"),
      meta(3, "https://a.example/two"), RRWebTests.snapshot(4), meta(5, ""),
    ]
    let batch = try RRWebTests.batch(RRWebTests.request("s", events))
    #expect(
      batch.pages.map { "\(($0.timeMs - RRWebTests.start) / 1_000) \($0.name)" } == [
        "0 https://a.example/one", "3 https://a.example/two",
      ])
    // They do not change what recognises a batch that is sent again.
    let others = events.map { $0.replacing("example/two", with: "example/three") }
    let other = try RRWebTests.batch(RRWebTests.request("s", others))
    var (one, two) = (BatchDigest(of: batch), BatchDigest(of: other))
    #expect(one.finish() == two.finish() && batch.pages != other.pages)
  }

  @Test func pagesOfABatchHaveALimit() {
    var pages: [PageView] = []
    for number in 0..<2_000 { PageView(timeMs: Int64(number), address: "\(number)")?.add(to: &pages) }
    #expect(pages.count == 1_000 && pages[999].name == "999")
  }
}
