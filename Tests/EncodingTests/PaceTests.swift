import Testing

@testable import Encoding
@testable import ISOMedia

@Suite struct PaceTests {
  @Test(
    arguments: [
      [1_000, 1_000, 1_000, 1_000, 1_000], [1_012, 975, 1_033, 993, 987], [333, 357, 314], [900, 1_100], [500, 400],
      [353, 357, 314, 323, 323, 323, 385, 319, 333], [250, 400, 310, 390, 260, 40, 300],
    ] as [[Int64]])
  func regularCapturesAreCodedOnce(holds: [Int64]) {
    #expect(SampleCadence(for: holds) == .asCaptured)
  }

  @Test(
    arguments: [
      [5_000], [1_000], [400], [1_000, 3_000, 1_000], [2_500, 2_500], [1_200, 1_200, 1_200],
      [353, 357, 314, 323, 323, 385, 1_522],
    ] as [[Int64]])
  func evenHoldsAreRepeatedEveryHalfSecond(holds: [Int64]) {
    #expect(SampleCadence(for: holds) == SampleCadence(sampleMs: 500))
  }

  @Test(
    arguments: [
      [1_000, 1_000, 1_000, 1_000, 200], [1_200, 1_200, 200], [1_000, 1_000, 1_010, 1_720, 270],
      [1_000, 500, 1_000, 40], [250, 400, 310, 390, 260, 300, 600], [250, 400, 310, 390, 260, 20],
      [250, 400, 310, 390, 260, 300, 20], [333, 333, 333, 333, 333, 333, 333, 333, 30],
      [400, 400, 400, 400, 400, 400, 400, 10],
    ] as [[Int64]])
  func unevenHoldsAreRepeatedEveryQuarterSecond(holds: [Int64]) {
    #expect(SampleCadence(for: holds) == .dense)
  }

  @Test(
    arguments: [
      ([60_000], 10_000), ([60_000, 60_000, 61_000], 10_000), ([10_000, 20_000], 10_000), ([12_000, 3_000], 1_000),
      ([5_000, 4_000, 60_000], 1_000), ([60_000, 300], 250), ([8_000], 1_000), ([1_000, 1_000, 1_000], .max),
    ] as [([Int64], Int64)])
  func longSegmentsNeedFewSamplesWhereTheyAreEven(holds: [Int64], sampleMs: Int64) {
    #expect(SampleCadence(for: holds, segmentMs: 600_000) == SampleCadence(sampleMs: sampleMs))
  }

  @Test func holdIsDividedEvenlyWithoutRemainder() {
    #expect(SampleCadence.asCaptured.sampleStarts(of: 1_000) == [0])
    #expect(SampleCadence(sampleMs: 500).sampleStarts(of: 2_000) == [0, 45_000, 90_000, 135_000])
    #expect(SampleCadence(sampleMs: 500).sampleStarts(of: 1_300) == [0, 39_000, 78_000])
    #expect(SampleCadence.dense.sampleStarts(of: 250) == [0])
    #expect(SampleCadence.dense.sampleStarts(of: 251) == [0, 11_295])
    for hold in Int64(1)...3_000 {
      let starts = SampleCadence.dense.sampleStarts(of: hold)
      #expect(starts[0] == 0 && starts == starts.sorted() && Set(starts).count == starts.count)
      #expect(starts.last! < MediaTime.ticks(ms: hold))
    }
  }
}
