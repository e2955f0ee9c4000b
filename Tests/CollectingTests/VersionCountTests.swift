import Testing

@testable import Collecting

@Suite struct VersionCountTests {
  private static func moved(_ count: Int) -> FileChanges { FileChanges(moved: count) }
  private static func closed(_ count: Int) -> FileChanges { FileChanges(closed: count) }

  @Test func replacedVersionsThatWereNotSeenAreLost() {
    var count = VersionCount()
    #expect(count.add(found: Self.moved(1)) == 0)
    #expect(count.add(found: Self.moved(3)) == 2)
    // This look saw the version of an event that comes later.
    #expect(count.add(found: Self.moved(1)) == 0)
    #expect(count.add(unseen: Self.moved(1)) == 1)
    #expect(count.add(found: nil) == 0)
  }

  @Test func firstVersionMayHaveReplacedOthers() {
    var count = VersionCount()
    #expect(count.add(found: Self.moved(4)) == 3)
  }

  @Test func newFileThatIsClosedSeveralTimesIsOneVersion() {
    var count = VersionCount()
    #expect(count.add(unseen: Self.closed(1)) == 0)
    #expect(count.add(found: Self.closed(2)) == 0)
    #expect(count.add(unseen: Self.closed(1)) == 0)
    #expect(!count.isRewritten)
    #expect(count.add(found: Self.closed(1)) == 0)
    #expect(count.isRewritten)
    // From now on each close is a version.
    #expect(count.add(unseen: Self.closed(1)) == 1)
    #expect(count.add(found: Self.closed(3)) == 2)
  }

  @Test func versionThatWasReplacedBeforeItWasCopiedIsLost() {
    var count = VersionCount()
    #expect(count.add(found: Self.moved(1)) == 0)
    #expect(count.add(found: Self.moved(1)) == 0)
    count.forgetLast()
    #expect(count.add(found: Self.moved(1)) == 1)
  }
}
