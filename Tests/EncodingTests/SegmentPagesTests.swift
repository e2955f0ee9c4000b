import FrameBatches
import JSON
import TestSupport
import Testing

@testable import Encoding
@testable import FrameBatches

/// Pages in manifests.
@Suite struct SegmentPagesTests {
  private func page(_ timeMs: Int64) throws -> PageView {
    try #require(PageView(timeMs: timeMs, address: "p\(timeMs)"))
  }

  @Test func eachPageIsInItsSegment() throws {
    let pages = try [100, 900, 1_000, 1_999, 2_500, 2_600, 3_500, 9_000].map { try page($0) }
    let placed = SegmentPages.placed(pages, on: [1_000..<2_000, 3_000..<4_000])
    // Of those before a segment, the last one.
    #expect(placed.map { $0.map(\.timeMs) } == [[900, 1_000, 1_999], [2_600, 3_500, 9_000]])
    let last = SegmentPages.json(placed[1], in: 3_000..<4_000)
    #expect(last.line == #"[[0,"p2600"],[500,"p3500"],[999,"p9000"]]"#)
    #expect(SegmentPages.placed([], on: [0..<1]).map(\.count) == [0])
    #expect(try SegmentPages.placed([page(1)], on: []).isEmpty)
  }

  @Test func manifestIsReadBack() throws {
    let segment = PublishedSegment.made(3_000, 4_000)
    let read = try SegmentPages.read(JSONParser.parse(Array(#"[[0,"a"],[500,"b"],[500,"c"]]"#.utf8)), of: segment)
    #expect(read.map(\.unixMs) == [3_000, 3_500, 3_500] && read.map(\.name) == ["a", "b", "c"])
  }

  @Test(arguments: [
    "[]", "{}", "[1]", #"[[0]]"#, #"[["a",0]]"#, #"[[-1,"a"]]"#, #"[[1000,"a"]]"#, #"[[5,"a"],[4,"b"]]"#,
    #"[[9223372036854775807,"a"]]"#,
  ])
  func otherMembersAreFaults(json: String) throws {
    let json = try JSONParser.parse(Array(json.utf8))
    #expect(throws: JSONError.self) { try SegmentPages.read(json, of: PublishedSegment.made(3_000, 4_000)) }
  }
}
