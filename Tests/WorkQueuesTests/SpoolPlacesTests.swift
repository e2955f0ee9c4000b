import FileSystem
import Foundation
import TestSupport
import Testing
import WorkQueues

/// docs/life-of-a-batch.md lists each directory of a spool: what ends, deletes and counts the pictures in it.
@Suite struct SpoolPlacesTests {
  @Test func pageHasEachDirectoryOfASpool() throws {
    let page = try String(contentsOf: Fixture.root.appendingPathComponent("docs/life-of-a-batch.md"), encoding: .utf8)
    let start = try #require(page.firstRange(of: "## Where a picture can be"))
    let section = page[start.upperBound...].prefix(upTo: page[start.upperBound...].firstRange(of: "\n## ")!.lowerBound)
    let spool = try Spool(creating: ScratchDirectory().path("spool"))
    for place in spool.places {
      #expect(section.contains("`\(lastComponent(of: place))/`"), "\(place)")
    }
    // The spool makes no directory that the page does not list.
    #expect(try Set(names(in: spool.path)).isSubset(of: spool.places.map { lastComponent(of: $0) }))
  }
}
