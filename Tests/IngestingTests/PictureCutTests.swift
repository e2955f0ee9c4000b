import Testing

@testable import Ingesting

/// The plan of a batch, by hand-written instants.
@Suite struct PictureCutTests {
  private static let last = PictureCoverage(lastMs: 10_000, endMs: 11_000, intervalMs: 1_000)

  private func cut(
    _ waiting: [Int64], most: Int = 60, after covered: PictureCoverage? = nil, holdsNewest: Bool = true,
    jumpMs: Int64 = 86_400_000
  ) -> PictureCut? {
    PictureCut(of: waiting, most: most, after: covered, holdsNewest: holdsNewest, jumpMs: jumpMs)
  }

  @Test func newestPictureWaitsAndEndsTheOneBefore() throws {
    #expect(cut([1_000]) == nil && cut([]) == nil)
    let plan = try #require(cut([1_000, 2_000, 3_500]))
    #expect(plan.timesMs == [1_000, 2_000] && plan.endMs == 3_500 && plan.intervalMs == 1_000)
    let all = try #require(cut([1_000, 2_000, 3_500], holdsNewest: false))
    #expect(all.timesMs == [1_000, 2_000, 3_500] && all.endMs == 4_500)
  }

  @Test func batchHasAMaximumOfPictures() throws {
    let plan = try #require(cut([1_000, 2_000, 3_000], most: 2))
    #expect(plan.timesMs == [1_000, 2_000] && plan.endMs == 3_000)
    // The picture behind it is there, so nothing waits.
    #expect(try #require(cut([1_000, 2_000], most: 1)).timesMs == [1_000])
  }

  @Test func latePicturesGoIntoABatchOfTheirOwn() throws {
    let plan = try #require(cut([9_000, 9_500, 11_000, 12_000], after: Self.last))
    #expect(plan.timesMs == [9_000, 9_500] && plan.intervalMs == 500 && plan.endMs == 10_000)
    #expect(try #require(cut([9_000], after: Self.last)).endMs == 10_000)
  }

  @Test func seamIsNotLate() throws {
    // Half of the interval either way.
    #expect(try #require(cut([10_501, 12_000], after: Self.last)).timesMs == [10_501])
    #expect(cut([10_500], after: Self.last)?.timesMs == [10_500])
    #expect(cut([10_501], after: Self.last) == nil)
    #expect(try #require(cut([11_000], after: Self.last, holdsNewest: false)).intervalMs == 1_000)
  }

  @Test func jumpOfTheClockEndsABatch() throws {
    let plan = try #require(cut([1_000, 2_000, 90_000, 91_000], jumpMs: 60_000))
    #expect(plan.timesMs == [1_000, 2_000] && plan.endMs == 3_000)
  }

  @Test func coverageFollowsTheBatch() throws {
    let plan = try #require(cut([1_000, 2_000, 3_500]))
    #expect(plan.coverage == PictureCoverage(lastMs: 2_000, endMs: 3_500, intervalMs: 1_000))
  }
}
